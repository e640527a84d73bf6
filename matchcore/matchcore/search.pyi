"""Nothing for Python: asking the pool is used by the compiled modules only."""
