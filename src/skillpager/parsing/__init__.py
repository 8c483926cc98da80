"""Parsing: read a skill from a path or text, and split it into fragments."""
