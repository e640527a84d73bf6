"""The errors of an archive. Disk errors stay OSError."""

from dataclasses import dataclass


class ArchiveError(Exception):
    """The root of all errors of this package."""


class Corrupt(ArchiveError):
    """Bytes are damaged: the message names the file and the position."""


class InUse(ArchiveError):
    """Another writer has this archive open."""


class UnknownFormat(ArchiveError):
    """Written by a later version, or not an archive."""


class Gone(ArchiveError):
    """Messages that a reader has been shown, or is still to be shown, are not in the archive any more.

    first, end: the offsets that are missing.
    """

    def __init__(self, first: int, end: int, why: str) -> None:
        super().__init__(f"messages {first} to {end - 1} are gone: {why}")
        self.first, self.end = first, end


class Missing(Gone):
    """No segment has them, and retention did not remove them: they were damaged, or a file was removed."""

    def __init__(self, first: int, end: int) -> None:
        super().__init__(first, end, "no segment has them: they were damaged, or a file was taken away")


@dataclass(frozen=True, slots=True)
class Loss:
    """Messages that a reader asks for and cannot have: `first` to before `end`, and the error that says why."""

    first: int
    end: int
    error: Gone | Corrupt
