"""The header of the PROXY protocol, versions 1 and 2: who a connection is from, in the words of the proxy before it.

HAProxy's specification, "The PROXY protocol, versions 1 & 2", sections 2.1 and 2.2. Nothing is read or written here:
`parse` is given the first bytes of a connection, and says how many more it needs or what they mean. The additional
fields of version 2 (TLVs) are skipped.
"""

import ipaddress
import struct
from typing import Final, NamedTuple

SIGNATURE: Final = b"\r\n\r\n\0\r\nQUIT\n"
FIXED: Final = 16  # bytes of version 2 before its addresses: signature, version and command, family, length
LINE_MAX: Final = 107  # bytes of version 1, with its end
BLOCK_MAX: Final = 4_096  # bytes behind the fixed part of version 2: addresses take up to 216, the rest are TLVs
LOCAL, PROXY = 0x20, 0x21  # version and command
# Family and transport -> the name of its addresses' size: TCP over IPv4 and IPv6. Others have no address for us.
ADDRESSES: Final = {0x11: struct.Struct("!4s4sHH"), 0x21: struct.Struct("!16s16sHH")}


class ProxyOrigin(NamedTuple):
    """What a header says. size: its bytes, after which the client's own begin; address: "" if it names none."""

    size: int
    address: str = ""
    port: int = 0


def parse(begun: bytes) -> ProxyOrigin | int:
    """The header that a connection begins with; or how many bytes must be there before more can be said.

    Raises ValueError for what is no header, or one that is too long.
    """
    if begun[:1] == b"P":
        return _version_1(begun)
    if SIGNATURE.startswith(begun[: len(SIGNATURE)]):
        return _version_2(begun)
    raise ValueError("it does not begin with a header of the PROXY protocol")


def _version_1(begun: bytes) -> ProxyOrigin | int:
    end = begun.find(b"\r\n", 0, LINE_MAX)
    if end < 0:
        if len(begun) >= LINE_MAX or not b"PROXY ".startswith(begun[:6]):
            raise ValueError(f"it begins with P, and not with a line `PROXY ...` of at most {LINE_MAX} bytes")
        return len(begun) + 1
    words = begun[:end].split(b" ")
    size = end + 2
    if words[:2] == [b"PROXY", b"UNKNOWN"]:
        return ProxyOrigin(size)
    if len(words) != 6 or words[0] != b"PROXY" or words[1] not in (b"TCP4", b"TCP6"):
        raise ValueError("its PROXY line is not `PROXY TCP4|TCP6 FROM TO PORT PORT`")
    kind = ipaddress.IPv4Address if words[1] == b"TCP4" else ipaddress.IPv6Address
    try:
        texts = [word.decode("ascii") for word in words[2:]]
        address, _ = kind(texts[0]), kind(texts[1])
    except ValueError:  # UnicodeDecodeError is one
        raise ValueError(f"its PROXY line has an address that is not {words[1].decode()}") from None
    return ProxyOrigin(size, str(address), _port(texts[2], texts[3]))


def _port(*texts: str) -> int:
    """The first of two ports. Raises ValueError."""
    if not all(text.isdecimal() and len(text) <= 5 and int(text) < 65_536 for text in texts):
        raise ValueError("its PROXY line has a port that is not 0 to 65535")
    return int(texts[0])


def _version_2(begun: bytes) -> ProxyOrigin | int:
    if len(begun) < FIXED:
        return FIXED
    command, family, length = begun[12], begun[13], int.from_bytes(begun[14:16])
    if command not in (LOCAL, PROXY):
        raise ValueError(f"its PROXY header has version and command {command:#04x}; known are 0x20 and 0x21")
    if length > BLOCK_MAX:
        raise ValueError(f"its PROXY header has {length} bytes; at most {BLOCK_MAX} are read")
    size = FIXED + length
    if len(begun) < size:
        return size
    addresses = ADDRESSES.get(family)
    if command == LOCAL or addresses is None:
        return ProxyOrigin(size)
    if length < addresses.size:
        raise ValueError(f"its PROXY header has {length} bytes, and its addresses take {addresses.size}")
    source, _, port, _ = addresses.unpack_from(begun, FIXED)
    return ProxyOrigin(size, str(ipaddress.ip_address(source)), port)
