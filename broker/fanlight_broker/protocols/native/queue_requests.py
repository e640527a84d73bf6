"""QUEUE of one connection: an operator's requests about named queues (section 3.10).

Every verb is a method; what may take many turns is a job of the core's (core/queue_jobs.py). The answer to what changes
a durable queue waits for the journal, as that of SUBSCRIBE does.
"""

from collections.abc import Callable, Mapping
from functools import partial
from heapq import nsmallest
from typing import Any, Final

from fanlight_broker import audit
from fanlight_broker.core import errors
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.queue_views import queue_view
from fanlight_broker.core.selectors import condition_of, where_of
from fanlight_broker.core.subscriber import Client
from fanlight_broker.core.topics import SYNTAXES, syntax_of
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.protocols.native import frames
from fanlight_broker.protocols.native.codec import PACKER
from fanlight_broker.protocols.native.convert import text_or_octets
from fanlight_broker.protocols.native.delayed_requests import DelayedRequests
from fanlight_broker.protocols.native.fields import Fields, OptionMap
from fanlight_broker.protocols.native.peeking import Peeking
from fanlight_broker.wire.lane import Lane
from fanlight_broker.wire.outbox import Outbox

WAITING_MAX: Final = 100  # requests of one connection without an answer yet
FILTERS_MAX: Final = 100  # of one queue
SCREENED_FILTERS_MAX: Final = 10  # of one with a selector, which is compiled for each, up to 2 ms
LISTED: Final = 100
LISTED_MAX: Final = 200
CONSUMERS_SHOWN: Final = 100
CHANGING: Final = frozenset({"add", "purge", "remove", "move", "cancel"})  # verbs that the audit log notes
ANSWER_BYTES: Final = 64 * 1024  # of one answer, about; less if that is not a frame

Result = Mapping[str, Any]
Answer = Callable[[Result], None]


class ConnectionQueues:
    def __init__(self, broker: Namespace, outbox: Outbox, lane: Lane) -> None:
        self._broker = broker
        self._outbox = outbox
        self._lane = lane
        self._waiting = 0
        self._over = False

    # They have no state, and refer to this: made for each request, they keep nothing beyond its end.

    @property
    def _peeking(self) -> Peeking:
        return Peeking(self._broker, lambda: self._room)

    @property
    def _delayed(self) -> DelayedRequests:
        return DelayedRequests(self._broker, lambda: self._room, self._commit)

    def end_all(self) -> None:
        """The connection has ended. What it has asked for goes on."""
        self._over = True

    def act(self, client: Client, frame: frames.QueueFrame, now: float) -> None:
        """QUEUE. Raises what it is refused with."""
        self._broker.ledger.now = now
        verbs: dict[str, Callable[[Client, OptionMap, Answer], None]] = {
            "add": self._add, "list": self._list, "info": self._info, "purge": self._purge, "remove": self._remove,
            "peek": self._peek, "move": self._move, "delayed": self._delayed.listed, "cancel": self._delayed.cancel,
        }
        verb = verbs.get(frame.verb)
        if verb is None:
            raise errors.Unsupported(f"there is no QUEUE verb {frame.verb!r}: it is one of {', '.join(verbs)}")
        if self._waiting >= WAITING_MAX:
            raise errors.LimitExceeded(
                "too many QUEUE requests without an answer; wait for some", "queue_requests", WAITING_MAX
            )
        self._waiting += 1
        try:
            verb(client, frame.arguments, partial(self._answer, frame.request))
        except errors.FanlightError:
            self._waiting -= 1
            raise
        if frame.verb in CHANGING:
            audit.note(
                "admin", action=f"queue {frame.verb}", queue=frame.arguments.text("name", frames.QUEUE_BYTES_MAX) or "",
                user=client.subscriber.user, client=client.subscriber.name, address=client.address,
            )

    # -- answers ----------------------------------------------------------------------------------------------------

    def _answer(self, request: int | None, result: Result) -> None:
        self._waiting -= 1
        if request is not None and not self._over:
            self._outbox.write(frames.ok(request, result))

    def _stored(self, queue: WorkQueue, answer: Answer, result: Result) -> None:
        """Answer when what was changed is stored, if the queue is."""
        if queue.options.durable and not self._over:
            self._commit(partial(answer, result))
        else:
            answer(result)

    def _commit(self, then: Callable[[], None]) -> None:
        if self._over:
            then()
        else:
            self._broker.acknowledgements.commit(then, self._lane, recorded=False)

    @property
    def _room(self) -> int:
        """Bytes of an answer, without what surrounds its items."""
        return min(ANSWER_BYTES, self._broker.limits.frame_bytes_max - 256)

    def _fitting(self, items: list[Any], room: int) -> list[Any]:
        """The first items that have room, one at least."""
        found: list[Any] = []
        for item in items:
            room -= len(PACKER.pack(item))
            if room < 0 and found:
                break
            found.append(item)
        return found

    # -- which queue --------------------------------------------------------------------------------------------------

    def _find(self, client: Client, arguments: OptionMap, key: str = "name") -> WorkQueue:
        """Raises NoSuchQueue; NotPermitted to a client that may not read and manage what the queue has."""
        name = arguments.text(key, frames.QUEUE_BYTES_MAX)
        if not name:
            raise errors.ProtocolViolation(f"QUEUE without {key}: the name of a queue")
        queue = self._broker.queues.find(name)
        self._broker.queues.check_manager(client.subscriber, queue)
        return queue

    # -- verbs --------------------------------------------------------------------------------------------------------

    def _add(self, client: Client, arguments: OptionMap, answer: Answer) -> None:
        name = arguments.text("name", frames.QUEUE_BYTES_MAX)
        filters = tuple(dict.fromkeys(filter_of(each) for each in arguments.array("filters")))
        if not name or not filters:
            raise errors.ProtocolViolation("QUEUE add without name, or without filters")
        where = arguments.text_or_map("where")
        most = FILTERS_MAX if where is None else SCREENED_FILTERS_MAX
        if len(filters) > most:
            raise errors.LimitExceeded("too many filters of one queue", "queue_filters", most)
        queues = self._broker.queues
        found = queues.get(name)
        if found is not None and set(found.filters) != set(filters):
            raise errors.QueueInUse(name, "filter")
        options = frames.parse_queue(arguments.map("queue"), durable=True)
        queue = queues.declare(
            client, name, filters, options, self._broker.ledger.now,
            condition=condition_of(where) if where is not None else None,
        )
        result = {"name": name, "created": found is None}
        if self._broker.position.refusing:  # then it was there before
            answer(result)
        else:
            self._stored(queue, answer, result)

    def _list(self, client: Client, arguments: OptionMap, answer: Answer) -> None:
        after, most = arguments.text("after"), arguments.number("limit")
        most = min(LISTED if most is None else max(most, 1), LISTED_MAX)
        queues = self._broker.queues
        names = (queue.name for queue in queues if after is None or queue.name > after)
        found = [queues.find(name) for name in nsmallest(most + 1, names)]
        shown = self._fitting([self._summary(client, queue) for queue in found[:most]], self._room)
        last = found[len(shown) - 1].name if len(shown) < len(found) else None
        answer({"queues": [each for each in shown if each is not None], "after": last})

    def _summary(self, client: Client, queue: WorkQueue) -> dict[str, Any] | None:
        """One line of a list; None if the client may not see it."""
        if not self._broker.queues.may_manage(client.subscriber, queue):
            return None
        inside, since = queue.inside, queue.inside.waiting_since
        return {
            "name": queue.name, "durable": queue.options.durable, "waiting": len(inside.queue),
            "delayed": inside.queue.apart, "unacknowledged": inside.unacknowledged, "bytes": inside.queue.nbytes,
            "oldest_seconds": None if since is None else max(0.0, self._broker.ledger.now - since),
            "consumers": len(queue.consumers), "where": where_of(queue.condition),
        }

    def _info(self, client: Client, arguments: OptionMap, answer: Answer) -> None:
        queue = self._find(client, arguments)
        view = queue_view(queue, self._broker.ledger.now, CONSUMERS_SHOWN)
        letters = queue.options.dead_letter
        filters = [[text_or_octets(text), SYNTAXES.index(syntax)] for text, syntax in queue.filters]
        del view["queue"]
        consumers = view.pop("consumers")
        answer({
            "name": queue.name, **view,
            "dead_letter": text_or_octets(letters[0]) if letters is not None else None,
            "dead_letter_syntax":
                SYNTAXES.index(letters[1]) if letters is not None and letters[1] in SYNTAXES else None,
            "filters": self._fitting(filters, self._room // 2),
            "consumers": self._fitting(consumers, self._room // 4), "consumer_count": len(queue.consumers),
        })

    def _purge(self, client: Client, arguments: OptionMap, answer: Answer) -> None:
        queue = self._find(client, arguments)
        self._broker.queue_jobs.purge(queue, lambda count: self._stored(queue, answer, {"messages": count}))

    def _remove(self, client: Client, arguments: OptionMap, answer: Answer) -> None:
        if_empty, force = arguments.flag("if_empty"), arguments.flag("force")
        queue = self._find(client, arguments)
        self._broker.queue_jobs.remove(
            queue, lambda count: self._stored(queue, answer, {"messages": count}), if_empty=if_empty, force=force
        )

    def _move(self, client: Client, arguments: OptionMap, answer: Answer) -> None:
        count, to = arguments.number("count"), arguments.text("to", frames.QUEUE_BYTES_MAX)
        source = self._find(client, arguments)
        target = self._find(client, arguments, "to") if to is not None else None
        self._broker.queue_jobs.move(
            source, target, count, client.subscriber,
            lambda count, why: self._stored(source, answer, {"messages": count, "stopped": why}),
        )

    def _peek(self, client: Client, arguments: OptionMap, answer: Answer) -> None:
        bounds = self._peeking.bounds(arguments)  # before it is looked whether there is such a queue
        if "session" in arguments or "group" in arguments:
            self._peeking.other(client, arguments, bounds, answer)
        else:
            self._peeking.named(self._find(client, arguments), bounds, answer)


def filter_of(value: Any) -> tuple[bytes, str]:
    """A filter with its syntax. Raises ProtocolViolation, Unsupported."""
    values = value if isinstance(value, list) else [value]
    fields = Fields("QUEUE filter", ["", *values])
    return fields.topic(0, "text"), syntax_of(fields.number_or_none(1, "syntax"))
