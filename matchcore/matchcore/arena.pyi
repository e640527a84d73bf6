"""Nothing for Python: blocks of units are used by the compiled modules only."""
