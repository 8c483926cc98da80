"""One page from several skills: which of them, who gets how much of the budget, and the text."""
