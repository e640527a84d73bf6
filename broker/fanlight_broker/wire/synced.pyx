# cython: language_level=3
"""What windows send when the journal has come further: see Window.unsynced."""

from fanlight_broker.wire.journal cimport JournalPosition
from fanlight_broker.wire.window cimport Window


def send_synced(JournalPosition position not None, double now):
    """Send the messages that waited for their tags to be synced."""
    cdef list windows = position.windows
    cdef Window window
    position.windows = []
    try:
        while windows:
            window = windows.pop()
            window.listed = False
            window.pump(now)
            if window.unsent and not window.listed:
                window.listed = True
                position.windows.append(window)
    finally:
        position.windows.extend(windows)    # those behind one that has raised
