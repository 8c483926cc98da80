"""TODO bench/report."""
