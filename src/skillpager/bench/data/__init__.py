"""Data of the benchmark: sources of skills and queries (paper §4.1), the benchmark folder, and models."""

from skillpager.bench.data.evidence import read_evidence
from skillpager.bench.data.folder import load_data, read_queries, read_skills, to_skill, write_data

__all__ = ["load_data", "read_evidence", "read_queries", "read_skills", "to_skill", "write_data"]
