"""The fields and option maps of a client's frames, taken by position or name with their types checked.

A field left out and a nil field are the same. What is wrong raises ProtocolViolation.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fanlight_broker.core.errors import ProtocolViolation

U32_MAX: Final = 2**32 - 1
SECONDS_MAX: Final = 10 * 365 * 86_400


class Fields:
    """The fields of one frame, taken by position or name with their types checked."""

    def __init__(self, name: str, values: Sequence[Any]) -> None:
        self.name = name
        self._values = values

    def at(self, position: int) -> Any:
        """The field at a position behind the type, None if it is left out."""
        return self._values[position + 1] if position + 1 < len(self._values) else None

    def number(self, position: int, what: str, most: int = U32_MAX) -> int:
        value = self.number_or_none(position, what, most)
        if value is None:
            raise ProtocolViolation(f"{self.name} without {what}")
        return value

    def number_or_none(self, position: int, what: str, most: int = U32_MAX) -> int | None:
        return check_number(f"{self.name} {what}", self.at(position), most)

    def seconds(self, position: int, what: str) -> float | None:
        return check_seconds(f"{self.name} {what}", self.at(position))

    def topic(self, position: int, what: str) -> bytes:
        value = self.at(position)
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, bytes):
            return value
        raise ProtocolViolation(f"{self.name} {what} must be a str, or a bin if it is not UTF-8; got {shown(value)}")

    def options(self, position: int) -> "OptionMap":
        value = self.at(position)
        if value is None:
            return OptionMap(self.name, {})
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise ProtocolViolation(f"{self.name} options must be a map with str keys; got {shown(value)}")
        return OptionMap(self.name, value)


class OptionMap:
    """An option map: keys that are not asked for are ignored."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self.name = name
        self._values = values

    def __contains__(self, key: str) -> bool:
        return self._values.get(key) is not None

    def number(self, key: str, most: int = U32_MAX) -> int | None:
        return check_number(f"{self.name} option {key}", self._values.get(key), most)

    def flag(self, key: str) -> bool:
        value = self._values.get(key)
        if value is not None and not isinstance(value, bool):
            raise ProtocolViolation(f"{self.name} option {key} must be a boolean; got {shown(value)}")
        return bool(value)

    def seconds(self, key: str) -> float | None:
        return check_seconds(f"{self.name} option {key}", self._values.get(key))

    def is_map(self, key: str) -> bool:
        return isinstance(self._values.get(key), dict)

    def text_or_map(self, key: str) -> str | dict[str, Any] | None:
        value = self._values.get(key)
        if value is not None and not isinstance(value, str | dict):
            raise ProtocolViolation(f"{self.name} option {key} must be a str or a map; got {shown(value)}")
        return value

    def map(self, key: str) -> "OptionMap":
        value = self._values.get(key)
        if value is not None and not isinstance(value, dict):
            raise ProtocolViolation(f"{self.name} option {key} must be a map; got {shown(value)}")
        return OptionMap(f"{self.name} option {key}:", value or {})

    def array(self, key: str) -> list[Any]:
        value = self._values.get(key)
        if value is not None and not isinstance(value, list):
            raise ProtocolViolation(f"{self.name} option {key} must be an array; got {shown(value)}")
        return value or []

    def topic(self, key: str) -> bytes | None:
        value = self._values.get(key)
        if value is not None and not isinstance(value, str | bytes):
            raise ProtocolViolation(f"{self.name} option {key} must be a topic; got {shown(value)}")
        return value.encode() if isinstance(value, str) else value

    def text(self, key: str, most: int | None = None) -> str | None:
        value = self._values.get(key)
        if value is not None and not isinstance(value, str):
            raise ProtocolViolation(f"{self.name} option {key} must be a str; got {shown(value)}")
        if value is not None and most is not None and len(value.encode()) > most:
            raise ProtocolViolation(f"{self.name} option {key} is {len(value.encode())} bytes; at most {most}")
        return value


def check_number(what: str, value: Any, most: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ProtocolViolation(f"{what} must be an integer from 0 to {most}; got {shown(value)}")
    return value


def check_seconds(what: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= SECONDS_MAX:
        raise ProtocolViolation(f"{what} must be seconds from 0 to {SECONDS_MAX}; got {shown(value)}")
    return float(value)


def shown(value: Any) -> str:
    """A peer's value for an error text, cut short."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
