"""Nothing for Python: the texts of an index are used by the compiled modules only."""
