"""Nothing for Python: drafts of selectors are used by the compiled modules only."""
