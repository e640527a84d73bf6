"""Nothing for Python: access keys are chosen and used by the compiled modules only."""
