"""Methods, suites and runs: selections of every method on every query."""
