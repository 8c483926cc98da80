"""Measures, statistics, tables, figures and the report of a run."""
