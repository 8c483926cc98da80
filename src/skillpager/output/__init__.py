"""Text, JSON and drawings of indexes, selections and pages, for all front ends."""
