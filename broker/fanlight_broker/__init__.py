"""Fanlight's broker. See ARCHITECTURE.md for the floors and the way of a message."""

__version__ = "0.1.0"
