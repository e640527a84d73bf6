"""Nothing for Python: the holders are used by the compiled modules only."""
