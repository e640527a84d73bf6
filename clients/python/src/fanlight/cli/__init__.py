"""The command `fanlight`."""
