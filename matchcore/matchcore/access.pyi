"""Nothing for Python: access keys are used by the compiled modules only."""
