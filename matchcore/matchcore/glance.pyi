"""Nothing for Python: the first look at selectors is used by the compiled modules only."""
