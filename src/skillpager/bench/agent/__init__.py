"""Agents on tasks: do they solve them with a page of a skill as often as with the whole, and at what cost?

tasks, arms ─► prompts ─► agent loop (endpoint, tools) or answers of others ─► checks ─► rows ─► tables
"""
