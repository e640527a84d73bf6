"""The types of methods' fields, as annotations: `queue: ShortStr` is a str here and a short string on the wire."""

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any


class Wire(Enum):
    """How a field is encoded (4.2.5). Bits that follow each other share octets.

    The values are for compiled code (table_values.read_method): an integer's are its bytes.
    """

    BIT = "t"
    OCTET = "1"
    SHORT = "2"
    LONG = "4"
    LONGLONG = "8"
    SHORT_STRING = "s"
    LONG_STRING = "S"
    TABLE = "F"


Bit = Annotated[bool, Wire.BIT]
Octet = Annotated[int, Wire.OCTET]
Short = Annotated[int, Wire.SHORT]
Long = Annotated[int, Wire.LONG]
LongLong = Annotated[int, Wire.LONGLONG]
ShortStr = Annotated[str, Wire.SHORT_STRING]
LongStr = Annotated[bytes, Wire.LONG_STRING]
Table = Annotated[Mapping[str, Any], Wire.TABLE]
