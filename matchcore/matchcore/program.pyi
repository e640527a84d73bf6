"""Nothing for Python: programs are run by the compiled modules only."""
