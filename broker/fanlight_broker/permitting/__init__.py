"""Permissions as a file: read, checked, put in force, tried without a broker, and imported (docs/permissions.md)."""
