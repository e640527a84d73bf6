"""The header of the PROXY protocol: examples of HAProxy's specification, byte by byte, and whatever else may come."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.net.proxy_header import BLOCK_MAX, FIXED, LINE_MAX, SIGNATURE, ProxyOrigin, parse

PORTS = st.integers(0, 65_535)
TAILS = st.binary(max_size=40)


def version_2(command: int, family: int, block: bytes) -> bytes:
    return SIGNATURE + bytes([command, family]) + len(block).to_bytes(2) + block


@st.composite
def headers(draw: st.DrawFn) -> tuple[bytes, str, int]:
    """(bytes, address, port) of a header that names one."""
    six, newer = draw(st.booleans()), draw(st.booleans())
    source, target = (draw(st.ip_addresses(v=6 if six else 4)) for _ in range(2))
    port, other = draw(PORTS), draw(PORTS)
    if newer:
        block = source.packed + target.packed + port.to_bytes(2) + other.to_bytes(2) + draw(st.binary(max_size=60))
        return version_2(0x21, 0x21 if six else 0x11, block), str(source), port
    return f"PROXY TCP{6 if six else 4} {source} {target} {port} {other}\r\n".encode(), str(source), port


@given(headers(), TAILS)
def test_a_header_is_found_whole_and_what_is_behind_it_is_not_touched(
    header: tuple[bytes, str, int], tail: bytes
) -> None:
    octets, address, port = header
    assert parse(octets + tail) == ProxyOrigin(len(octets), address, port)


@given(headers())
def test_byte_by_byte_it_asks_for_more_until_it_is_there(header: tuple[bytes, str, int]) -> None:
    octets, address, port = header
    for size in range(1, len(octets)):
        found = parse(octets[:size])
        assert isinstance(found, int)
        assert size < found <= len(octets)
    assert parse(octets) == ProxyOrigin(len(octets), address, port)


@pytest.mark.parametrize("octets", [
    b"PROXY UNKNOWN\r\n", b"PROXY UNKNOWN ffff:f::1 ffff:f::2 65535 65535\r\n", version_2(0x20, 0x00, b""),
    version_2(0x20, 0x11, bytes(12)), version_2(0x21, 0x00, b""), version_2(0x21, 0x31, bytes(216)),
])  # fmt: skip
def test_a_header_may_name_nobody(octets: bytes) -> None:
    assert parse(octets + b"tail") == ProxyOrigin(len(octets))


@pytest.mark.parametrize("octets", [
    b"GET / HTTP/1.1\r\n", b"\x10\x10\0\4MQTT", b"\x16\x03\x01", b"POST / HTTP/1.1\r\n",
    b"PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n",
    b"PROXY TCP4 1.2.3.4 5.6.7.8 1 65536\r\n", b"PROXY TCP4 1.2.3.4 5.6.7.8 -1 5\r\n", b"PROXY TCP4 ::1 ::1 1 2\r\n",
    b"PROXY TCP6 1.2.3.4 5.6.7.8 1 2\r\n", b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2 3\r\n", b"PROXY TCP4 \xff 5.6.7.8 1 2\r\n",
    b"PROXY TCP4 " + b"1" * LINE_MAX, version_2(0x11, 0x11, bytes(12)), version_2(0x22, 0x11, bytes(12)),
    version_2(0x21, 0x11, bytes(11)), version_2(0x21, 0x21, bytes(35)),
    SIGNATURE + b"\x21\x11" + (BLOCK_MAX + 1).to_bytes(2),
])  # fmt: skip
def test_what_is_no_header_is_a_value_error(octets: bytes) -> None:
    with pytest.raises(ValueError, match="it"):
        parse(octets)


@given(st.binary(min_size=1, max_size=300) | TAILS.map(SIGNATURE.__add__) | TAILS.map(b"PROXY ".__add__))
def test_nothing_else_comes_of_any_bytes(octets: bytes) -> None:
    try:
        found = parse(octets)
    except ValueError:
        return
    if isinstance(found, ProxyOrigin):
        assert 0 < found.size <= len(octets)
        assert not found.address or ipaddress.ip_address(found.address)
    else:
        assert len(octets) < found <= FIXED + BLOCK_MAX
