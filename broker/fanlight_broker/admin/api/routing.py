"""Which operation a request asks for: by its method, and by the words of its path as they are percent-encoded."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fanlight_broker.admin.api.declared import Operation
from fanlight_broker.admin.api.problems import ApiError


class FoundOperation(NamedTuple):
    operation: Operation
    named: dict[str, str]  # what is in the path, by name; still percent-encoded


class MethodNotAllowed(ApiError):
    def __init__(self, methods: Sequence[str]) -> None:
        super().__init__(405, f"this path can be asked with {', '.join(methods)}")
        self.methods = methods


class Routing:
    """The operations, by the words of their paths."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = tuple(operations)
        self._by_shape: dict[tuple[str, ...], dict[str, Operation]] = {}
        for each in operations:
            methods = self._by_shape.setdefault(shape_of(each.path), {})
            assert each.method not in methods, f"{each.method} {each.path} is declared twice"
            methods[each.method] = each

    def find(self, method: str, path: str) -> FoundOperation:
        """path: below /api/v1. Raises ApiError: 404, or 405."""
        words = tuple(path.strip("/").split("/")) if path.strip("/") else ()
        methods = self._methods(words)
        if methods is None:
            raise ApiError(404, "there is no such path; GET /api/v1 lists all there are")
        operation = methods.get("GET" if method == "HEAD" else method)
        if operation is None:
            raise MethodNotAllowed(sorted(methods))
        names = operation.names
        shape = shape_of(operation.path)
        named = [word for word, part in zip(words, shape, strict=True) if not part]
        return FoundOperation(operation, dict(zip(names, named, strict=True)))

    def _methods(self, words: tuple[str, ...]) -> Mapping[str, Operation] | None:
        """Literal words come before names: /permissions/check is not a rule that is called check."""
        found = self._by_shape.get(words)
        if found is not None and all(words):
            return found
        for at in (1, 2):  # no path has a name elsewhere
            if len(words) > at and words[at] and (found := self._by_shape.get((*words[:at], "", *words[at + 1 :]))):
                return found
        return None


def shape_of(path: str) -> tuple[str, ...]:
    """The words of a declared path; "" where a name is."""
    words = path.strip("/").split("/") if path.strip("/") else []
    return tuple("" if word.startswith("{") else word for word in words)
