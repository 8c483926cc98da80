"""Measure routing: queries whose needed skills are known, in libraries of thousands of others."""
