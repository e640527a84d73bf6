"""The types of methods' fields, as annotations: `queue: ShortStr` is a str here and a short string on the wire."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Annotated, Any


class Wire(Enum):
    """How a field is encoded (4.2.5). Bits that follow each other share octets."""

    BIT = auto()
    OCTET = auto()
    SHORT = auto()
    LONG = auto()
    LONGLONG = auto()
    SHORT_STRING = auto()
    LONG_STRING = auto()
    TABLE = auto()


Bit = Annotated[bool, Wire.BIT]
Octet = Annotated[int, Wire.OCTET]
Short = Annotated[int, Wire.SHORT]
Long = Annotated[int, Wire.LONG]
LongLong = Annotated[int, Wire.LONGLONG]
ShortStr = Annotated[str, Wire.SHORT_STRING]
LongStr = Annotated[bytes, Wire.LONG_STRING]
Table = Annotated[Mapping[str, Any], Wire.TABLE]
