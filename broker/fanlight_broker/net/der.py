"""DER, as far as certificates and revocation lists need it (X.690, 8.1): where an element begins and ends."""

from typing import Final

SEQUENCE: Final = 0x30
INTEGER: Final = 0x02
UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18
EXPLICIT_0: Final = 0xA0  # [0] EXPLICIT


def open_element(octets: bytes, at: int, tag: int) -> tuple[int, int]:
    """Where the content of the element at `at` begins and ends. Raises ValueError if it has another tag or a length
    that is too long, IndexError at the end of the octets.
    """
    if octets[at] != tag:
        raise ValueError(f"an element of tag {octets[at]:#x} in place of {tag:#x}")
    size, at = octets[at + 1], at + 2
    if size >= 0x80:
        count = size & 0x7F
        if not 0 < count <= 4:
            raise ValueError(f"an element with a length of {count} octets")
        size, at = int.from_bytes(octets[at : at + count]), at + count
    if at + size > len(octets):
        raise ValueError("an element that is longer than what it is in")
    return at, at + size


def end_of(octets: bytes, at: int) -> int:
    """Where the element at `at` ends, whatever it is. Raises as `open_element`."""
    return open_element(octets, at, octets[at])[1]
