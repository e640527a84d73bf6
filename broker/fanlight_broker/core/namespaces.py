"""The namespaces that somebody is in, or that something is kept in, beside the root: by their names, and bounded."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from fanlight_broker import event_log
from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.namespace import Namespace

log: Final = event_log.get("core")


class Namespaces:
    """make     a namespace of this name
    counts   what it has counted so far, which is kept when it is let go
    """

    def __init__(
        self, most: int, make: Callable[[str], Namespace], counts: Callable[[Namespace], Mapping[str, int]]
    ) -> None:
        self.most = most
        self.refused = self.begun = 0
        self.gone: Counter[str] = Counter()  # what those have counted that were let go
        self._make = make
        self._counts = counts
        self._by_name: dict[str, Namespace] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Namespace]:
        return iter(list(self._by_name.values()))

    def get(self, name: str) -> Namespace | None:
        return self._by_name.get(name)

    def of(self, name: str) -> Namespace:
        """The namespace of this valid name, a new one if need be. Raises LimitExceeded."""
        found = self._by_name.get(name)
        if found is None:
            if len(self) >= self.most:
                self.refused += 1
                raise LimitExceeded("too many namespaces", "namespaces_max", self.most)
            found = self.restore(name)
        return found

    def restore(self, name: str) -> Namespace:
        """The same, of what was there before a restart: whatever the limit is now."""
        found = self._by_name.get(name)
        if found is None:
            self.begun += 1
            found = self._by_name[name] = self._make(name)
            log.info("namespace_begun", namespace=name)
        return found

    def let_go(self, namespace: Namespace) -> None:
        """Forget one that is idle."""
        del self._by_name[namespace.name]
        self.gone.update(self._counts(namespace))
        namespace.close()
        log.info("namespace_ended", namespace=namespace.name)
