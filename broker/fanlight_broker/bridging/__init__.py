"""Bridges to other brokers: read from a file, connected, and looked at (docs/bridge.md, decision 0029)."""
