"""Sockets and the clock: asyncio lives here, and ends here."""
