"""What routing is made of: destinations (queues by name, exchanges), what a message reaches, and a search for that."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from fanlight_broker.protocols.amqp.exchanges.kept_answer import KeptAnswer

if TYPE_CHECKING:
    from fanlight_broker.protocols.amqp.exchanges.arguments import Arguments

Headers = Mapping[str, Any] | Callable[[], Mapping[str, Any] | None] | None
"""Of a message: the table, what reads it when it is asked for, or None without headers."""

FEW: Final = 4  # entries in a tuple, which takes a third of a set
NO_HEADERS: Final[Mapping[str, Any]] = {}


class HashedProperties(Protocol):
    """The properties of a message that an exchange may hash by: those of the codec's BasicProperties."""

    @property
    def message_id(self) -> str | None: ...

    @property
    def correlation_id(self) -> str | None: ...

    @property
    def timestamp(self) -> int | None: ...


class Destination:
    """Where a binding leads to: a queue with bindings, or an exchange.

    number   within its vhost, for an index of numbers; another's once this one has ended
    sources  the exchanges that are bound to it
    """

    __slots__ = ("name", "number", "sources")

    is_exchange = False

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.sources: tuple[AmqpExchange, ...] | set[AmqpExchange] = ()


class Destinations(KeptAnswer):
    """What a message to an exchange reaches. The package's docstring has the meaning of each attribute."""

    __slots__ = ("prepared", "queues", "topics")

    def __init__(self, queues: tuple[str, ...], topics: tuple[str, ...] = ()) -> None:
        self.queues = queues
        self.topics = topics
        self.prepared: Any = None
        self.valid = False  # until it is kept

    @property
    def unroutable(self) -> bool:
        return not self.queues and not self.topics


class Search:
    """What one message has reached so far.

    by_key      an exchange has looked at the keys: without that the answer is the same for all keys
    by_message  an exchange has looked at more than the keys, so the answer is this message's alone
    found       the exchange that is asked has found something, which may have been found before
    """

    __slots__ = ("_headers", "by_key", "by_message", "exchanges", "found", "keys", "properties", "queues")

    def __init__(
        self, keys: tuple[str, ...], headers: Headers = None, properties: HashedProperties | None = None
    ) -> None:
        self.keys = keys
        self._headers = headers
        self.properties = properties
        self.queues: dict[str, Any] = {}  # a set in the order of arrival; the values are anything
        self.exchanges: list[AmqpExchange] = []
        self.by_key = False
        self.by_message = False
        self.found = False

    @property
    def headers(self) -> Mapping[str, Any]:
        """The table of headers; empty without one."""
        if callable(self._headers):
            self._headers = self._headers()
        return self._headers or NO_HEADERS

    def reach(self, destination: Destination) -> None:
        self.found = True
        if isinstance(destination, AmqpExchange):
            self.exchanges.append(destination)
        else:
            self.queues[destination.name] = None


class BindingTable(Protocol):
    """The bindings of one exchange, as its type looks them up. A binding is added once, and removed once."""

    def check(self, key: str, arguments: Mapping[str, Any]) -> None:
        """Raises AmqpError for a binding that the type refuses."""
        ...

    def add(self, destination: Destination, key: str, arguments: "Arguments") -> None: ...

    def remove(self, destination: Destination, key: str, arguments: "Arguments") -> None: ...

    def find(self, search: Search) -> None:
        """Put what the message reaches into the search."""
        ...


class AmqpExchange(Destination):
    """An exchange of a vhost.

    bound      what each destination is bound with
    answers    by key, as long as they are right
    always     the answer to all keys, where they do not matter
    onward     by key, to what others have published to its topics
    routes     the lane's, by the destinations that its bindings give
    asked_by   the exchanges whose answers have come through this one; asks: those that its own have come through
    is_shared  it is the broker's own topics
    """

    __slots__ = (
        "alternate", "always", "answers", "arguments", "asked_by", "asks", "auto_delete", "bound", "delayed", "durable",
        "internal", "is_shared", "onward", "routes", "table", "type",
    )

    is_exchange = True

    def __init__(
        self, name: str, number: int, type: str, table: BindingTable, *, durable: bool, auto_delete: bool = False,
        internal: bool = False, arguments: Mapping[str, Any] = NO_HEADERS, delayed: bool = False,
    ) -> None:
        super().__init__(name, number)
        self.type = type
        self.table = table
        self.durable = durable
        self.auto_delete = auto_delete
        self.internal = internal
        self.arguments = arguments
        self.delayed = delayed
        self.alternate: str | None = arguments.get("alternate-exchange")
        self.bound: dict[Destination, tuple[Any, ...] | set[Any]] = {}
        self.answers: dict[str, Destinations] = {}
        self.always: Destinations | None = None
        self.onward: dict[str, Destinations] = {}
        self.routes: KeptAnswer | None = None
        self.asked_by: set[AmqpExchange] = set()
        self.asks: set[AmqpExchange] = set()
        self.is_shared = False

    def delay(self, headers: Mapping[str, Any] | None) -> int:
        """Milliseconds for which a message is held: 0 if this is no x-delayed-message exchange, or it has no delay."""
        asked = headers.get("x-delay") if self.delayed and headers else None
        if isinstance(asked, int) and not isinstance(asked, bool) and 0 < asked < 1 << 32:
            return asked
        return 0


def with_entry(entries: tuple[Any, ...] | set[Any], entry: Any) -> tuple[Any, ...] | set[Any]:
    """A small set with one more: a tuple as long as it is small. The set that is given may be the one that returns."""
    if isinstance(entries, set):
        entries.add(entry)
        return entries
    return (*entries, entry) if len(entries) < FEW else {*entries, entry}


def without_entry(entries: tuple[Any, ...] | set[Any], entry: Any) -> tuple[Any, ...] | set[Any]:
    if isinstance(entries, set):
        entries.discard(entry)
        return entries
    return tuple(each for each in entries if each != entry)
