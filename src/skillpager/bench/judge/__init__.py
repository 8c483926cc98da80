"""Judges: is a context sufficient for a query? The evidence measure, a language model, people."""
