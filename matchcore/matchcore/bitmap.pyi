"""Nothing for Python: rows of bits are used by the compiled modules only."""
