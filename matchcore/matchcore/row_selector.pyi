"""Nothing for Python: used by the compiled modules only."""
