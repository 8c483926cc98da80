"""Routing: the words of all skills in a catalog, and the model that says which of them a query needs."""
