"""Stage 7: a selection becomes a page."""
