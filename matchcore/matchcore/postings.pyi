"""Nothing for Python: the postings are used by the compiled modules only."""
