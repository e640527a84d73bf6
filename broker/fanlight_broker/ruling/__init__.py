"""Routing rules as a file: read, checked, put in force, and tried without a broker (docs/rules.md)."""
