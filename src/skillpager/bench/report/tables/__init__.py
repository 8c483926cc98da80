"""Tables of a run: the paper's with our measurements beside them, and our own."""

from skillpager.bench.report.tables.table import Cell, Table, to_csv, to_html, to_markdown

__all__ = ["Cell", "Table", "to_csv", "to_html", "to_markdown"]
