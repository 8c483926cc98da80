"""The graph of a skill: typed edges between its nodes."""
