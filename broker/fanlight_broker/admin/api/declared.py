"""Declarations of operations: what there is to be asked, with which parameters, and what comes back.

An operation is declared once, as data. From it come the routing (routing.py), the checks of what is sent (here), the
index of the API and its OpenAPI document (openapi.py).
"""

import re
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

from fanlight_broker.admin.api.problems import BadParameter
from fanlight_broker.core.identity import Identity
from fanlight_broker.core.permissions import Action

if TYPE_CHECKING:
    from aiohttp import web

Schema = Mapping[str, Any]  # JSON Schema, as OpenAPI 3.1 has it
Result = Any  # a JSON object, a Reply, or a response that is streamed
Handler = Callable[["Call"], Result | Generator[None, None, Result] | Awaitable[Result]]

INTEGER_MAX: Final = 2**53  # that every JSON reader has
TEXT_MAX: Final = 65_535  # characters of a parameter or of a name
_INTEGER: Final = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)
KINDS: Final[Mapping[type, str]] = {
    str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the path or the query, or one key of the body.

    kind     str, int, float, bool; bytes: a name in the path, of any octets; in a body also dict, list, and object: any
    least    and most: bounds of a number; of a text, how long it may be is `most`
    """

    name: str
    kind: type
    summary: str
    default: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None

    @property
    def schema(self) -> dict[str, Any]:
        if self.kind is object:
            return {}
        found: dict[str, Any] = {"type": KINDS.get(self.kind, "string")}
        if self.choices:
            found["enum"] = list(self.choices)
        elif self.kind in (str, bytes):
            found["minLength"], found["maxLength"] = int(self.least or 0), int(self.most or TEXT_MAX)
        elif self.kind in (int, float):
            found["minimum"] = 0 if self.least is None else self.least
            found["maximum"] = INTEGER_MAX if self.most is None else self.most
        if self.default is not None:
            found["default"] = self.default
        return found

    def read(self, raw: str) -> Any:
        """The value of a text in path or query. Raises BadParameter."""
        if self.kind is int and _INTEGER.fullmatch(raw):
            return self._bounded(int(raw))
        if self.kind is float and _NUMBER.fullmatch(raw):
            return self._bounded(float(raw))
        if self.kind is bool and raw in ("true", "false"):
            return raw == "true"
        if self.kind is str:
            return self._text(raw)
        raise BadParameter(self.name, f"{raw[:40]!r} is no {KINDS[self.kind]}")

    def check(self, value: Any) -> Any:
        """A value of a JSON body. Raises BadParameter."""
        if self.kind is object:
            return value
        if self.kind is str and isinstance(value, str):
            return self._text(value)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if (self.kind is int and whole) or (self.kind is float and (whole or isinstance(value, float))):
            return self._bounded(value)
        if self.kind is int and isinstance(value, float) and value.is_integer():  # JSON knows one kind of number
            return self._bounded(int(value))
        if self.kind in (bool, dict, list) and isinstance(value, self.kind):
            return value
        raise BadParameter(self.name, f"must be of type {KINDS[self.kind]}")

    def _text(self, value: str) -> str:
        if self.choices and value not in self.choices:
            raise BadParameter(self.name, f"{value[:40]!r} is none of {', '.join(self.choices)}")
        least, most = self.least or 0, TEXT_MAX if self.most is None else self.most
        if not least <= len(value) <= most:
            raise BadParameter(self.name, f"{len(value)} characters; it has {least:g} to {most:g}")
        if any("\ud800" <= each <= "\udfff" for each in value):
            raise BadParameter(self.name, "has half of a surrogate pair, which no UTF-8 has")
        return value

    def _bounded(self, value: float) -> float:
        least, most = 0 if self.least is None else self.least, INTEGER_MAX if self.most is None else self.most
        if not least <= value <= most:  # NaN is not, either
            raise BadParameter(self.name, f"must be from {least:g} to {most:g}")
        return value


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that can be asked for or done.

    path       below /api/v1, with names in braces: "/connections/{number}"
    answer     the schema of what 200 (or `status`) answers; None: of another content type
    body       the keys of a JSON object that is sent; None: nothing is
    action     the permission that it needs; None: whoever may speak to the broker
    conflicts  whether it answers 409, where the state does not allow it
    absent     whether it answers 404, where there is no such thing
    """

    method: str
    path: str
    summary: str
    handler: Handler
    answer: Schema | None
    parameters: tuple[Parameter, ...] = ()
    body: tuple[Parameter, ...] | None = None
    action: Action | None = None
    status: int = 200
    content_type: str = "application/json"
    conflicts: bool = False
    absent: bool = False
    tag: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Of what is in its path."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def writes(self) -> bool:
        return self.action is Action.ADMIN_WRITE


@dataclass(slots=True)
class Call:
    """One request of an operation: its parameters by name, all of them, and its body."""

    parameters: dict[str, Any]
    body: dict[str, Any]
    identity: Identity
    request: "web.BaseRequest"
    caller: str  # who shares the bounds of a client: a user, or an address
    noted: dict[str, Any] = field(default_factory=dict)  # what else the audit log is to say

    def __getitem__(self, name: str) -> Any:
        return self.parameters[name]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with another status than the operation's, or with headers."""

    value: Mapping[str, Any]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def read_parameters(operation: Operation, named: Mapping[str, str], query: Any) -> dict[str, Any]:
    """What is in the path, as it is percent-encoded there, and in the query. Raises BadParameter."""
    found: dict[str, Any] = {}
    for each in operation.parameters:
        if each.name in named:
            octets = unquote_to_bytes(named[each.name])
            found[each.name] = octets if each.kind is bytes else each.read(_decoded(each.name, octets))
        elif each.name in query:
            if len(query.getall(each.name)) > 1:
                raise BadParameter(each.name, "is given more than once")
            found[each.name] = each.read(query[each.name])
        elif each.required:
            raise BadParameter(each.name, f"is missing: {each.summary}")
        else:
            found[each.name] = each.default
    for name in query:
        if name not in found or name in named:
            known = ", ".join(each.name for each in operation.parameters if each.name not in named) or "none"
            raise BadParameter(name[:40], f"is unknown here; there are: {known}")
    return found


def read_body(operation: Operation, value: Any) -> dict[str, Any]:
    """The keys of a body. Raises BadParameter."""
    assert operation.body is not None
    if not isinstance(value, dict):
        raise BadParameter("body", "must be a JSON object")
    known = {each.name: each for each in operation.body}
    if unknown := [name for name in value if name not in known]:
        raise BadParameter(unknown[0][:40], f"is unknown here; there are: {', '.join(known)}")
    for each in operation.body:
        if each.required and value.get(each.name) is None:
            raise BadParameter(each.name, f"is missing: {each.summary}")
    # null is what is left out, so that a program may send all keys.
    return {
        name: each.check(value[name]) if value.get(name) is not None else each.default for name, each in known.items()
    }


def _decoded(name: str, octets: bytes) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        raise BadParameter(name, "is not UTF-8") from None


# -- schemas ----------------------------------------------------------------------------------------------------------

TEXT: Final[Schema] = {"type": "string"}
WHOLE: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
FLAG: Final[Schema] = {"type": "boolean"}
ANYTHING: Final[Schema] = {}
MAP: Final[Schema] = {"type": "object"}


def maybe(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


def items(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def shape(**keys: Schema) -> Schema:
    """An object that has these keys, and perhaps others."""
    return {"type": "object", "properties": keys, "required": list(keys)}
