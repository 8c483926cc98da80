"""The default strategy: a learned estimate of which nodes a query needs."""
