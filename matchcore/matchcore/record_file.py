"""The file of a record index: a head, a table of sections, what they mean as JSON, the sections.

    8   "mcrecord"
    u32 version, u32 CRC-32 of the rest of the head, the table and the JSON
    u64 bytes of the file, u64 records, u32 sections, u32 bytes of the JSON
    for each section: u64 where it begins, u64 bytes, u32 CRC-32, u32 0
    the JSON, the sections

Integers are little endian. The checksum of the head is compared when a file is opened, that of a section when it is
first read: so a file that is mapped is opened without reading it all. Whoever maps a file must see to it that nobody
shortens it: the system ends a process that reads behind the end of a mapped file.
"""

import json
import struct
import zlib
from typing import Any, Final

from typing_extensions import Buffer

from matchcore.errors import InvalidFrozenIndex

__all__ = ["RecordFile", "pack_record_file"]

MAGIC: Final = b"mcrecord"
VERSION: Final = 1
HEAD: Final = struct.Struct("<8sIIQQII")
CHECKED: Final = 16  # the checksum is over what follows here
SECTION: Final = struct.Struct("<QQII")
RECORDS_AT_MOST: Final = 1 << 32


def pack_record_file(records: int, described: dict[str, Any], sections: list[bytes]) -> bytes:
    """The bytes of a file. `described` must be JSON."""
    text = json.dumps(described, separators=(",", ":")).encode()
    at = HEAD.size + SECTION.size * len(sections) + len(text)
    table = []
    for section in sections:
        table.append(SECTION.pack(at, len(section), zlib.crc32(section), 0))
        at += len(section)
    head = HEAD.pack(MAGIC, VERSION, 0, at, records, len(sections), len(text))[CHECKED:] + b"".join(table) + text
    return b"".join([MAGIC, struct.pack("<II", VERSION, zlib.crc32(head)), head, *sections])


class RecordFile:
    """A file that is read, over bytes that are lent. Raises InvalidFrozenIndex.

    `source` is the path, for errors; `described` what was packed with it.
    """

    def __init__(self, data: Buffer, source: str | None = None) -> None:
        self.source = source
        self._data = data = memoryview(data).cast("B")
        if len(data) < HEAD.size:
            raise self.invalid(f"{len(data)} bytes, less than a head")
        magic, version, crc, size, self.records, count, text_size = HEAD.unpack_from(data)
        if magic != MAGIC:
            raise self.invalid("it does not begin as a record index does")
        if version != VERSION:
            raise self.invalid(f"it has version {version}; this is version {VERSION}")
        if size != len(data):
            raise self.invalid(f"it should have {size} bytes, and has {len(data)}")
        end = HEAD.size + SECTION.size * count + text_size
        if end > size:
            raise self.invalid("its head is longer than the file")
        if zlib.crc32(data[CHECKED:end]) != crc:
            raise self.invalid("its head is damaged")
        if self.records > RECORDS_AT_MOST:
            raise self.invalid(f"it has {self.records} records")
        table = [SECTION.unpack_from(data, HEAD.size + SECTION.size * number) for number in range(count)]
        self._places = [(at, size, crc) for at, size, crc, _ in table]
        self._read: dict[int, memoryview] = {}
        try:
            self.described = json.loads(bytes(data[end - text_size : end]))
        except ValueError as error:
            raise self.invalid(f"its description is no JSON: {error}") from error

    def invalid(self, reason: str) -> InvalidFrozenIndex:
        return InvalidFrozenIndex(self.source, reason)

    def section(self, number: int) -> memoryview:
        """Its bytes, once their checksum was found right."""
        found = self._read.get(number)
        if found is not None:
            return found
        if not 0 <= number < len(self._places):
            raise self.invalid(f"it has no section {number}")
        at, size, crc = self._places[number]
        found = self._data[at : at + size]
        if len(found) != size or zlib.crc32(found) != crc:
            raise self.invalid(f"section {number} is damaged")
        self._read[number] = found
        return found

    @property
    def nbytes(self) -> int:
        return len(self._data)
