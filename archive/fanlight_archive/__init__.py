"""The archive's format: what the broker writes and the pipeline reads, with the same code.

    schema    the columns                        frames    a batch in a segment, with its checksum
    segment   a file of batches, by offset       manifest  what is known beyond the segments
    writer    append, sync, roll, remove_old     recovery  what happens when it is opened
    reader    by offset, time and filter         damage    what recovery cuts off, and keeps
    holds     readers that retention waits for   files     what is asked of a disk

It imports nothing of the broker, and of others only pyarrow. docs/archive-format.md specifies the bytes.
"""

from fanlight_archive.errors import ArchiveError, Corrupt, Gone, InUse, Loss, Missing, UnknownFormat
from fanlight_archive.reader import Archive, topics
from fanlight_archive.recovery import Recovered
from fanlight_archive.schema import FORMAT, MESSAGE, SCHEMA
from fanlight_archive.writer import Writer

__all__ = [
    "FORMAT",
    "MESSAGE",
    "SCHEMA",
    "Archive",
    "ArchiveError",
    "Corrupt",
    "Gone",
    "InUse",
    "Loss",
    "Missing",
    "Recovered",
    "UnknownFormat",
    "Writer",
    "topics",
]
