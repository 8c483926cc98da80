"""TODO bench/cli."""
