"""Numbers of names, in some 25 bytes a name: a file of permissions may have a rule for each of a million devices.

    0xFF alice 0xFE 1a  0xFF bob 0xFE 2b ...       a bucket: names as UTF-8, each with its number in hexadecimal

A dict takes 150 bytes a name, and doubles in one step, in which nothing else runs. Here a bucket is found by the hash
of the name, and searched. Neither byte is in UTF-8, so no name is found within another, or in a number.
"""

from sys import getsizeof
from typing import Final

IN_A_BUCKET: Final = 16  # names on average, if all that are expected come
BUCKETS_MIN: Final = 64
NOT_THERE: Final = -1
START: Final = b"\xff"
END: Final = b"\xfe"


class NameTable:
    """expected: names, about; the more there are beyond it, the longer each look-up takes."""

    def __init__(self, expected: int = 0) -> None:
        self._count = max(BUCKETS_MIN, expected // IN_A_BUCKET)
        self._buckets = [b""] * self._count

    def find(self, name: str) -> int:
        """The number of a name, or NOT_THERE."""
        record = b"\xff%b\xfe" % name.encode("utf-8", "surrogatepass")
        bucket = self._buckets[hash(name) % self._count]
        at = bucket.find(record)
        if at < 0:
            return NOT_THERE
        at += len(record)
        end = bucket.find(START, at)
        return int(bucket[at:] if end < 0 else bucket[at:end], 16)

    def add(self, name: str, number: int) -> None:
        """A name that is not there yet."""
        self._buckets[hash(name) % self._count] += b"\xff%b\xfe%x" % (name.encode("utf-8", "surrogatepass"), number)

    def items(self) -> list[tuple[str, int]]:
        """All names with their numbers, in no order."""
        records = [record.split(END) for bucket in self._buckets for record in bucket.split(START)[1:]]
        return [(name.decode("utf-8", "surrogatepass"), int(number, 16)) for name, number in records]

    @property
    def nbytes(self) -> int:
        return getsizeof(self._buckets) + sum(getsizeof(bucket) for bucket in self._buckets if bucket)
