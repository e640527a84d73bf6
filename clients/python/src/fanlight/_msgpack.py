"""The three things of msgpack that are used, with types: the library ships none."""

from typing import Any

from msgpack import Packer as _Packer  # type: ignore[import-untyped, unused-ignore]
from msgpack import unpackb as _unpackb


class Packer:
    """Packs one value at a time. Not to be shared by threads."""

    __slots__ = ("pack",)

    def __init__(self) -> None:
        # The bound C method is the attribute: a wrapper of our own would double the cost of a small frame.
        self.pack = _Packer(use_bin_type=True, autoreset=True).pack

    def packed(self, value: Any) -> bytes:
        result: bytes = self.pack(value)
        return result


# str and bin are distinguished, map keys must be str or bin, str must be UTF-8, nesting ends at 1,024: all
# defaults.
unpack = _unpackb
