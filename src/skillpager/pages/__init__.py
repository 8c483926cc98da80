"""Pages: render a selection within the budget, name the gaps, find nodes by address."""
