"""TODO bench/run."""
