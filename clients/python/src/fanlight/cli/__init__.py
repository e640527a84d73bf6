"""The command `fanlight`: publish, subscribe, ask, answer, look. One file for each verb; `entry` puts them
together."""

from .entry import main

__all__ = ["main"]
