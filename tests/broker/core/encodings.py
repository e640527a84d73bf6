"""The two encodings of bodies, by the judgement of packages that everybody uses: what tests of both have in common."""

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple, NoReturn

import msgpack  # type: ignore[import-untyped]
from hypothesis import strategies as st
from msgpack import fallback

from tests.broker.core.bodies import Bodies, Pairs, Path, depth, exactly, expected, values_of

LEVELS: Final = 8
NAMES = st.sampled_from(["a", "b", "c", "price", "region", "a rather long name of a field", "ä€", "", "\n", "😀"])


class Unsound(ValueError):
    """By the judgement of the package."""


class Encoding(NamedTuple):
    """One format of bodies.

    maps     values that it can say
    encode   with the pairs of a map as they are
    decode   raises Unsound
    damage   octets that mean something in it
    """

    name: str
    maps: st.SearchStrategy[Pairs]
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    damage: bytes

    def paths_in(self, value: Any) -> list[Path]:
        found = {path for path, _ in values_of(value) if len(path) <= LEVELS} if isinstance(value, Pairs) else set()
        return sorted(found)

    def agrees(self, octets: bytes, paths: list[Path]) -> None:
        """Does a reader say of these octets what the package says?"""
        bodies = Bodies(self.name, *paths)
        found = bodies.read(octets)
        try:
            value = self.decode(octets)
        except Unsound:
            assert found is None
            assert sum(bodies.refused) == 1
            return
        if not isinstance(value, Pairs) or depth(value) > LEVELS:
            assert found is None
            assert bodies.refused == ((0, 1) if isinstance(value, Pairs) else (1, 0))
        else:
            assert exactly(found) == exactly(expected(value, paths))


def maps_of(scalars: st.SearchStrategy[Any], names: st.SearchStrategy[Any]) -> st.SearchStrategy[Pairs]:
    def wider(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(st.lists(inner, max_size=5), st.lists(st.tuples(names, inner), max_size=5).map(Pairs))

    return st.lists(st.tuples(names, st.recursive(scalars, wider, max_leaves=8)), max_size=6).map(Pairs)


# -- msgpack ----------------------------------------------------------------------------------------------------------

MSGPACK_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from([0, -1, 127, 128, -32, -33, 255, 256, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)]),
    st.floats(),
    st.floats(width=32),
    st.text(max_size=40),
    st.binary(max_size=40),
    st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=20)),
)


def in_msgpack(value: Any) -> bytes:
    if isinstance(value, Pairs):
        head = msgpack.Packer().pack_map_header(len(value))
        return bytes(head) + b"".join(in_msgpack(one) for pair in value for one in pair)
    if isinstance(value, list):
        return bytes(msgpack.Packer().pack_array_header(len(value))) + b"".join(map(in_msgpack, value))
    return bytes(msgpack.packb(value))


class Timeless:
    """Extensions as they are: of the types that are reserved the package takes times only, and not all of these."""

    @staticmethod
    def from_bytes(octets: bytes) -> msgpack.ExtType:
        return msgpack.ExtType(0, octets)

    @staticmethod
    def extension(code: int, octets: bytes) -> msgpack.ExtType:
        return msgpack.ExtType(0, octets)


def out_of_msgpack(octets: bytes) -> Any:
    known = fallback.Timestamp
    fallback.Timestamp = Timeless
    try:
        return fallback.unpackb(
            octets, raw=False, strict_map_key=False, object_pairs_hook=Pairs, ext_hook=Timeless.extension
        )
    except (ValueError, msgpack.UnpackException) as error:
        raise Unsound(str(error)) from error
    finally:
        fallback.Timestamp = known


MSGPACK: Final = Encoding(
    "msgpack", maps_of(MSGPACK_SCALARS, st.one_of(NAMES, NAMES, NAMES, MSGPACK_SCALARS)), in_msgpack, out_of_msgpack,
    bytes(range(0x80, 0x84)) + bytes(range(0x90, 0x93)) + bytes(range(0xC0, 0xE0)),
)  # fmt: skip

# -- JSON -------------------------------------------------------------------------------------------------------------

NUMBERS = st.one_of(
    st.integers(),
    st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 2**53 + 1, 10**19, 10**400, -0.0, 5e-324]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-1000, 1000, places=4).map(float),
)
ESCAPED = st.text('ab\\"/\b\f\n\r\t\0\x7f', max_size=9)
JSON_SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=40), ESCAPED)


def in_json(value: Any, ascii: bool = False, blank: str = "") -> str:
    """With `blank` wherever it may be."""
    if isinstance(value, Pairs):
        names = [f"{blank}{json.dumps(name, ensure_ascii=ascii)}{blank}" for name, _ in value]
        members = [f"{name}:{in_json(inner, ascii, blank)}" for name, (_, inner) in zip(names, value, strict=True)]
        return f"{blank}{{{','.join(members)}{blank}}}{blank}"
    if isinstance(value, list):
        return f"{blank}[{','.join(in_json(one, ascii, blank) for one in value) or blank}]{blank}"
    return blank + json.dumps(value, ensure_ascii=ascii) + blank


def out_of_json(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), object_pairs_hook=Pairs, parse_constant=refuse, parse_float=finite)
    except ValueError as error:
        raise Unsound(str(error)) from error


def refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def finite(text: str) -> float | None:
    """An infinite one is absent."""
    return number if abs(number := float(text)) != float("inf") else None


def styled(name: str, ascii: bool, blank: str) -> Encoding:
    def encode(value: Any) -> bytes:
        return in_json(value, ascii, blank).strip().encode()

    return Encoding(name, maps_of(JSON_SCALARS, NAMES), encode, out_of_json, b'{}[]:,"\\u0-+.eE \n')


JSON: Final = styled("json", ascii=False, blank="")
JSON_WITH_BLANKS: Final = styled("json", ascii=True, blank="\r\n\t ")
