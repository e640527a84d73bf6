"""The header of a segment, for check, repair and backup: docs/store-format.md has its bytes."""

from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from fanlight_broker.storage.crc32c import crc32c

HEADER_BYTES: Final = 4096  # of a segment, before its first entry
COPY_BYTES: Final = 2048
_FIELDS: Final = Struct("<8sIIQQQ")
_LONG, _SHORT = 64, 32  # bytes under the checksum, without it: with a floor, and as it was before there was one


class HeaderPage(NamedTuple):
    generation: int
    salt: int
    floor: int
    copies: tuple[bytes | None, bytes | None]  # None: not whole

    @property
    def whole(self) -> bytes:
        """The copy that counts."""
        return next(each for each in self.copies if each is not None and generation_of(each) == self.generation)


def read_page(path: Path) -> bytes:
    """The first page of a file, filled up with zeros. OSError."""
    with path.open("rb") as file:
        return file.read(HEADER_BYTES).ljust(HEADER_BYTES, b"\0")


def header_of(page: bytes) -> HeaderPage | None:
    """None: neither copy is whole, or the file was never used."""
    first, second = (each if _is_whole(each) else None for each in (page[:COPY_BYTES], page[COPY_BYTES:HEADER_BYTES]))
    best = max((each for each in (first, second) if each is not None), key=generation_of, default=None)
    if best is None:
        return None
    _, _, _, generation, salt, floor = _FIELDS.unpack_from(best)
    return HeaderPage(generation, salt, floor, (first, second))


def generation_of(copy: bytes) -> int:
    generation: int = _FIELDS.unpack_from(copy)[3]
    return generation


def with_generation(copy: bytes, generation: int) -> bytes:
    """The same header for another use of a file: the whole page."""
    octets = bytearray(copy)
    octets[16:24] = generation.to_bytes(8, "little")
    size = _SHORT if _crc_of(copy, _SHORT) == _crc_in(copy) else _LONG
    octets[12:16] = _crc_of(octets, size).to_bytes(4, "little")
    return bytes(octets) * 2


def _is_whole(copy: bytes) -> bool:
    if not copy.startswith(b"fanlight"):
        return False
    short = not any(copy[_SHORT:_LONG]) and _crc_in(copy) == _crc_of(copy, _SHORT)
    return short or _crc_in(copy) == _crc_of(copy, _LONG)


def _crc_in(copy: bytes) -> int:
    crc: int = _FIELDS.unpack_from(copy)[2]
    return crc


def _crc_of(copy: bytes | bytearray, size: int) -> int:
    return crc32c(copy[16:size], crc32c(copy[:12]))
