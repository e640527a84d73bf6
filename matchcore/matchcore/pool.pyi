"""Nothing for Python: the dense pool is used by the compiled modules only."""
