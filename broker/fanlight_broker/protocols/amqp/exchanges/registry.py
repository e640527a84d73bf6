"""The exchanges of a vhost: declared, deleted, bound, and asked where a message goes."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fanlight_broker.core.numbered import Numbered
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.exchanges.arguments import Arguments, frozen, nbytes_of, thawed
from fanlight_broker.protocols.amqp.exchanges.exchange import (
    AmqpExchange,
    Destination,
    Destinations,
    HashedProperties,
    Headers,
    Search,
    with_entry,
    without_entry,
)
from fanlight_broker.protocols.amqp.exchanges.kept_answer import KeptAnswer
from fanlight_broker.protocols.amqp.exchanges.kept_answers import KeptAnswers
from fanlight_broker.protocols.amqp.exchanges.kinds import (
    ALTERNATE,
    DELAYED,
    PREDECLARED,
    check_alternate,
    check_equal,
    check_type,
    table_of,
)
from fanlight_broker.protocols.amqp.exchanges.ports import (
    BINDING_BYTES,
    EXCHANGE_BYTES,
    TOPIC_INDEX_BYTES,
    Binding,
    ExchangeLimits,
    Keeper,
    Names,
    NoKeeper,
    TopicSpace,
)
from fanlight_broker.protocols.amqp.exchanges.shared import SharedTable
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode

RESERVED: Final = "amq."
SHARED: Final = "amq.topic"
NO_ARGUMENTS: Final[Mapping[str, Any]] = {}


class Exchanges:
    """One vhost. `protocols.amqp.exchanges` describes what each method does and raises.

    queues  of the vhost, by name
    topics  makes amq.topic the broker's own topics
    alternate_of  by policy, of an exchange that is declared without one
    """

    def __init__(
        self, vhost: str, queues: Names, *, keeper: Keeper | None = None, topics: TopicSpace | None = None,
        limits: ExchangeLimits = ExchangeLimits(),  # noqa: B008  it is frozen
        alternate_of: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self.vhost = vhost
        self._all_queues = queues
        self._alternate_of = alternate_of
        self._keeper: Keeper = keeper if keeper is not None else NoKeeper()
        self._limits = limits
        self._exchanges: dict[str, AmqpExchange] = {}
        self._queues: dict[str, Destination] = {}  # those with bindings
        self._numbered = Numbered[Destination]()
        self._alternates: dict[str, set[AmqpExchange]] = {}  # by the name that they name, whether it is there or not
        self._kept = KeptAnswers(limits.kept_max)
        self.bindings_count = 0
        self.nbytes = 0  # estimated
        for name, type in PREDECLARED.items():
            self._begin(name, type, durable=True)
        if topics is not None:
            shared = self._exchanges[SHARED]
            shared.table = SharedTable(self._numbered.rows, limits, topics, shared.bound)
            shared.is_shared = True

    # -- exchanges --------------------------------------------------------------------------------------------------

    def find(self, name: str) -> AmqpExchange | None:
        return self._exchanges.get(name)

    def in_force(self) -> list[AmqpExchange]:
        """All but the default one."""
        return list(self._exchanges.values())

    def declare(
        self, name: str, type: str = "direct", *, durable: bool = False, auto_delete: bool = False,
        internal: bool = False, arguments: Mapping[str, Any] = NO_ARGUMENTS, passive: bool = False,
    ) -> AmqpExchange:
        """The exchange of that name: a new one, or the one that is there and is equal. passive: it must be there."""
        self._check_not_default(name)
        if passive:
            return self._existing(name)
        check_type(type)
        exchange = self._exchanges.get(name)
        if exchange is None:
            if name.startswith(RESERVED):
                raise AmqpError(
                    ReplyCode.ACCESS_REFUSED, f"exchange name '{name}' contains reserved prefix '{RESERVED}*'"
                )
            check_alternate(name, self.vhost, arguments)
            if len(self._exchanges) >= self._limits.exchanges_max:
                raise self._too_many(f"{self._limits.exchanges_max} exchanges")
            exchange = self._begin(
                name, type, durable=durable, auto_delete=auto_delete, internal=internal, arguments=arguments
            )
            if durable:
                self._keeper.exchange_begun(exchange)
            return exchange
        current = {
            "type": exchange.type, "durable": exchange.durable, "auto_delete": exchange.auto_delete,
            "internal": exchange.internal, "arguments": exchange.arguments,
        }
        check_equal(name, self.vhost, current, {
            "type": type, "durable": durable, "auto_delete": auto_delete, "internal": internal, "arguments": arguments,
        })
        return exchange

    def delete(self, name: str, *, if_unused: bool = False) -> None:
        self._check_not_default(name)
        if name.startswith(RESERVED):
            raise AmqpError(
                ReplyCode.ACCESS_REFUSED, f"deletion of system exchange '{name}' in vhost '{self.vhost}' not allowed"
            )
        exchange = self._exchanges.get(name)
        if exchange is None:
            return
        if if_unused and exchange.bound:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"exchange '{name}' in vhost '{self.vhost}' in use")
        self._end(exchange)

    def _begin(
        self, name: str, type: str, *, durable: bool, auto_delete: bool = False, internal: bool = False,
        arguments: Mapping[str, Any] = NO_ARGUMENTS,
    ) -> AmqpExchange:
        nbytes = _exchange_bytes(type, arguments)
        self._check_room(nbytes)
        table = table_of(type, arguments, self._numbered.rows, self._limits)
        exchange = AmqpExchange(
            name, 0, type, table, durable=durable, auto_delete=auto_delete, internal=internal, arguments=arguments,
            delayed=type == DELAYED,
        )
        exchange.number = self._numbered.put(exchange)
        self._exchanges[name] = exchange
        self.nbytes += nbytes
        if exchange.alternate is not None:
            self._alternates.setdefault(exchange.alternate, set()).add(exchange)
        self.follow_policy(exchange)
        for each in self._alternates.get(name, ()):
            self._kept.changed(each)
        return exchange

    def follow_policy(self, exchange: AmqpExchange) -> None:
        """Its alternate exchange may be another one, if it is not an argument."""
        alternate = exchange.arguments.get(ALTERNATE)
        if alternate is None and exchange.name != SHARED:
            alternate = self._alternate_of(exchange.name)
        if alternate != exchange.alternate:
            self._leave_alternate(exchange)
            exchange.alternate = alternate
            if alternate is not None:
                self._alternates.setdefault(alternate, set()).add(exchange)
            self._kept.changed(exchange)

    def _leave_alternate(self, exchange: AmqpExchange) -> None:
        if exchange.alternate is not None:
            naming = self._alternates[exchange.alternate]
            naming.discard(exchange)
            if not naming:
                del self._alternates[exchange.alternate]

    def _end(self, first: AmqpExchange) -> None:
        """It goes, its bindings in both directions with it, and the exchanges that delete themselves for that."""
        ending, known = [first], {first}
        for exchange in ending:
            for destination, entries in list(exchange.bound.items()):
                for entry in list(entries):
                    self._unbind(exchange, destination, *_parts(entry))
            for source in list(exchange.sources):
                for entry in list(source.bound[exchange]):
                    self._unbind(source, exchange, *_parts(entry))
                if source.auto_delete and not source.bound and source not in known:
                    known.add(source)
                    ending.append(source)
            self._kept.changed(exchange)
            self._kept.drop(exchange)
            del self._exchanges[exchange.name]
            self._leave_alternate(exchange)
            self.nbytes -= _exchange_bytes(exchange.type, exchange.arguments)
            self._numbered.remove(exchange.number)
            if exchange.durable:
                self._keeper.exchange_ended(exchange)

    def _end_if_unused(self, exchange: AmqpExchange) -> None:
        """An exchange that deletes itself goes with its last binding."""
        if exchange.auto_delete and not exchange.bound:
            self._end(exchange)

    def _existing(self, name: str) -> AmqpExchange:
        exchange = self._exchanges.get(name)
        if exchange is None:
            raise self._missing(name)
        return exchange

    def _missing(self, name: str) -> AmqpError:
        return AmqpError(ReplyCode.NOT_FOUND, f"no exchange '{name}' in vhost '{self.vhost}'")

    @staticmethod
    def _check_not_default(name: str) -> None:
        if not name:
            raise AmqpError(ReplyCode.ACCESS_REFUSED, "operation not permitted on the default exchange")

    def _check_room(self, nbytes: int) -> None:
        if self.nbytes + nbytes > self._limits.bytes_max:
            raise self._too_many(f"{self._limits.bytes_max} bytes of exchanges and bindings")

    def _too_many(self, limit: str) -> AmqpError:
        return AmqpError(ReplyCode.PRECONDITION_FAILED, f"vhost '{self.vhost}' has at most {limit}")

    # -- bindings ---------------------------------------------------------------------------------------------------

    def bind(self, queue: str, exchange: str, key: str, arguments: Mapping[str, Any] = NO_ARGUMENTS) -> None:
        """A binding that is there is no error."""
        self._check_not_default(exchange)
        source = self._existing(exchange)
        if queue not in self._all_queues:
            raise AmqpError(ReplyCode.NOT_FOUND, f"no queue '{queue}' in vhost '{self.vhost}'")
        destination = self._queues.get(queue)
        if destination is None:
            destination = Destination(queue, 0)
        self._bind(source, destination, key, arguments)

    def bind_exchange(
        self, destination: str, source: str, key: str, arguments: Mapping[str, Any] = NO_ARGUMENTS
    ) -> None:
        self._check_not_default(source)
        self._check_not_default(destination)
        origin = self._existing(source)
        self._bind(origin, self._existing(destination), key, arguments)

    def unbind(self, queue: str, exchange: str, key: str, arguments: Mapping[str, Any] = NO_ARGUMENTS) -> None:
        """A binding that is not there is no error."""
        self._check_not_default(exchange)
        self._unbind_one(self._exchanges.get(exchange), self._queues.get(queue), key, arguments)

    def unbind_exchange(
        self, destination: str, source: str, key: str, arguments: Mapping[str, Any] = NO_ARGUMENTS
    ) -> None:
        self._check_not_default(source)
        self._check_not_default(destination)
        self._unbind_one(self._exchanges.get(source), self._exchanges.get(destination), key, arguments)

    def queue_ended(self, queue: str) -> None:
        """A queue is no more: its bindings go, and exchanges that delete themselves."""
        destination = self._queues.get(queue)
        if destination is None:
            return
        for source in list(destination.sources):
            for entry in list(source.bound[destination]):
                self._unbind(source, destination, *_parts(entry))
            self._end_if_unused(source)

    def bindings(self, exchange: str | None = None) -> Iterator[Binding]:
        """Of one exchange, or of all; the default exchange has none here. They may change meanwhile."""
        for each in self.in_force() if exchange is None else filter(None, [self._exchanges.get(exchange)]):
            yield from self._bindings_of(each)

    def bindings_to(self, queue: str) -> Iterator[Binding]:
        """Those of one queue. They may change meanwhile."""
        destination = self._queues.get(queue)
        if destination is None:
            return
        for source in list(destination.sources):
            for entry in list(source.bound.get(destination, ())):
                yield _binding(source, destination, entry)

    def _bindings_of(self, exchange: AmqpExchange) -> Iterator[Binding]:
        """Those in force when each is asked for: exchanges may change in between."""
        for destination in list(exchange.bound):
            for entry in list(exchange.bound.get(destination, ())):
                if entry in exchange.bound.get(destination, ()):
                    yield _binding(exchange, destination, entry)

    def _bind(self, source: AmqpExchange, destination: Destination, key: str, arguments: Mapping[str, Any]) -> None:
        asked = frozen(arguments)
        entry, held = _entry(key, asked), source.bound.get(destination, ())
        if entry in held:
            return
        source.table.check(key, arguments)
        nbytes = _binding_bytes(key, asked)
        self._check_room(nbytes)
        is_new = not isinstance(destination, AmqpExchange) and destination.name not in self._queues
        if is_new:
            destination.number = self._numbered.put(destination)
        try:
            source.table.add(destination, key, asked)
        except AmqpError:
            if is_new:
                self._numbered.remove(destination.number)
            raise
        if is_new:
            self._queues[destination.name] = destination
        if not held:
            destination.sources = with_entry(destination.sources, source)
        source.bound[destination] = with_entry(held, entry)
        self.nbytes += nbytes
        self.bindings_count += 1
        self._kept.changed(source)
        if _is_kept(source, destination):
            self._keeper.bound(_binding(source, destination, entry))

    def _unbind_one(
        self, source: AmqpExchange | None, destination: Destination | None, key: str, arguments: Mapping[str, Any]
    ) -> None:
        """Nothing happens if it is not there."""
        if source is None or destination is None:
            return
        asked = frozen(arguments)
        if _entry(key, asked) in source.bound.get(destination, ()):
            self._unbind(source, destination, key, asked)
            self._end_if_unused(source)

    def _unbind(self, source: AmqpExchange, destination: Destination, key: str, arguments: Arguments) -> None:
        """A binding that is there goes. The caller looks whether the source goes, too."""
        entry = _entry(key, arguments)
        left = without_entry(source.bound[destination], entry)
        if left:
            source.bound[destination] = left
        else:
            del source.bound[destination]
            destination.sources = without_entry(destination.sources, source)
        source.table.remove(destination, key, arguments)
        self.nbytes -= _binding_bytes(key, arguments)
        self.bindings_count -= 1
        self._kept.changed(source)
        if _is_kept(source, destination):
            self._keeper.unbound(_binding(source, destination, entry))
        if not isinstance(destination, AmqpExchange) and not destination.sources:
            del self._queues[destination.name]
            self._numbered.remove(destination.number)

    # -- messages ---------------------------------------------------------------------------------------------------

    def publish(
        self, name: str, key: str, headers: Headers = None, properties: HashedProperties | None = None,
        more_keys: tuple[str, ...] = (), *, by_broker: bool = False,
    ) -> Destinations:
        """What a message to an exchange reaches. more_keys: CC and BCC. headers, properties: as the docstring says.

        by_broker  also if the exchange is internal
        """
        exchange = self._exchanges.get(name)
        if exchange is None:
            if not name:
                return self._by_default((key, *more_keys) if more_keys else (key,))
            raise self._missing(name)
        if exchange.internal and not by_broker:
            raise AmqpError(
                ReplyCode.ACCESS_REFUSED, f"cannot publish to internal exchange '{name}' in vhost '{self.vhost}'"
            )
        if not more_keys:
            kept = exchange.answers.get(key) or exchange.always
            if kept is not None:
                return kept
        return self._routed(exchange, Search((key, *more_keys), headers, properties))

    def keep_routes(self, exchange: AmqpExchange, routes: KeptAnswer) -> None:
        """`valid` until a binding of the exchange changes, or it is another one."""
        self._kept.keep_routes(exchange, routes)

    def queues_by_numbers(self, exchange: AmqpExchange, numbers: tuple[int, ...]) -> tuple[str, ...] | None:
        """The queues that a message reaches whose bindings lead to destinations of these numbers; None: it is led on to
        other exchanges.
        """
        if not numbers and exchange.alternate is not None:
            return None
        found = [self._numbered.rows[number] for number in numbers]
        if any(each is None or each.is_exchange for each in found):
            return None
        return tuple(each.name for each in found if each is not None)

    def publish_onward(
        self, name: str, key: str, headers: Headers = None, properties: HashedProperties | None = None
    ) -> Destinations:
        """What a message that others have published to amq.topic reaches through exchanges that are bound to it."""
        first = self._existing(name)
        kept = first.onward.get(key)
        return kept if kept is not None else self._routed(first, Search((key,), headers, properties), onward=True)

    def leads_onward(self, key: str) -> bool:
        """Is an exchange bound to amq.topic that gets messages with this key?"""
        search = Search((key,))
        self._existing(SHARED).table.find(search)
        return bool(search.exchanges)

    @property
    def is_plain(self) -> bool:
        """Is there nothing but what each vhost begins with?"""
        return not self.bindings_count and len(self._exchanges) == len(PREDECLARED)

    def _by_default(self, keys: tuple[str, ...]) -> Destinations:
        if len(keys) == 1:
            return Destinations(keys if keys[0] in self._all_queues else ())
        return Destinations(tuple(key for key in dict.fromkeys(keys) if key in self._all_queues))

    def _routed(self, first: AmqpExchange, search: Search, *, onward: bool = False) -> Destinations:
        """Walk through the exchanges, each once. An alternate exchange is asked where a table has found nothing."""
        topics: tuple[str, ...] = ()
        path, known = [first], {first}
        for exchange in path:
            if exchange.is_shared and not (onward and exchange is first):
                topics = tuple(dict.fromkeys(search.keys))
            search.found = False
            exchange.table.find(search)
            if exchange.alternate is not None and not search.found:
                self._ask_alternate(exchange.alternate, search)
            for each in search.exchanges:
                if each not in known:
                    known.add(each)
                    path.append(each)
            search.exchanges.clear()
        answer = Destinations(tuple(search.queues), topics)
        if onward and not search.by_message:
            self._kept.keep_onward(first, search.keys[0], answer, path)
        elif not search.by_message and len(search.keys) == 1:
            by_key = search.by_key or topics
            self._kept.keep(first, search.keys[0] if by_key else None, answer, path)
        return answer

    def _ask_alternate(self, name: str, search: Search) -> None:
        if name:
            behind = self._exchanges.get(name)
            if behind is not None:
                search.exchanges.append(behind)
            return
        search.by_message = True  # queues come and go
        search.queues.update(dict.fromkeys(key for key in search.keys if key in self._all_queues))


def _entry(key: str, arguments: Arguments) -> Any:
    """What a destination is bound with: a key, or a key and arguments."""
    return (key, arguments) if arguments else key


def _parts(entry: Any) -> tuple[str, Arguments]:
    return (entry, ()) if isinstance(entry, str) else entry


def _binding(source: AmqpExchange, destination: Destination, entry: Any) -> Binding:
    key, arguments = _parts(entry)
    return Binding(
        source.name, destination.name, not isinstance(destination, AmqpExchange), key, thawed(arguments)
    )


def _is_kept(source: AmqpExchange, destination: Destination) -> bool:
    return source.durable and (not isinstance(destination, AmqpExchange) or destination.durable)


def _binding_bytes(key: str, arguments: Arguments) -> int:
    return BINDING_BYTES + len(key) + (nbytes_of(arguments) if arguments else 0)


def _exchange_bytes(type: str, arguments: Mapping[str, Any]) -> int:
    return EXCHANGE_BYTES + nbytes_of(frozen(arguments)) + (TOPIC_INDEX_BYTES if type == "topic" else 0)
