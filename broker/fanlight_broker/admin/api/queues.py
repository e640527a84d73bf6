"""Named queues: what waits, and what to do with it. Dead letters are in them, too."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import Any

from fanlight_broker.admin.api.declared import FLAG, TEXT, WHOLE, Call, Operation, Parameter, items, maybe, shape
from fanlight_broker.admin.api.lists import NAMESPACE, Id, Listing, page_of
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.peeking import peeked
from fanlight_broker.admin.api.publisher import Publishers
from fanlight_broker.admin.api.shown import PEEK, PEEKED, href, text_of
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.peeking import peek_named
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.queue_views import age_of, queue_view
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.core.work_queue import WorkQueue

CONSUMERS_SHOWN = 100
LISTED_CONSUMERS = 10  # in a list of many queues
LETTERS_REACH = 1_000  # subscriptions of a dead-letter topic, among which queues are looked for
NAME = Parameter("name", str, "name of the queue", least=1)
QUEUE = shape(
    queue=TEXT, durable=FLAG, filters=items(shape(filter=TEXT, syntax=TEXT)), waiting=WHOLE, unacknowledged=WHOLE,
    bytes=WHOLE, consumer_count=WHOLE, href=TEXT,
)
MOVED = shape(messages=WHOLE, stopped=maybe(TEXT))
PURGED = shape(messages=WHOLE)
LETTERS = shape(
    queue=TEXT, dead_letter=TEXT, discarded=WHOLE, held_in=items(shape(queue=TEXT, waiting=WHOLE, href=TEXT)),
)


class QueueOperations:
    def __init__(self, operated: Operated, publishers: Publishers) -> None:
        self._operated, self._publishers = operated, publishers
        broker = operated.broker
        self.listing: Listing[WorkQueue] = Listing(
            rows=self._rows, count=lambda: sum(len(home.queues) for home in broker.everywhere()), id=id_of,
            view=partial(self._view, consumers=LISTED_CONSUMERS),
            keys={
                "queue": lambda queue: queue.name, "user": lambda queue: queue.subscriber.user,
                "durable": lambda queue: queue.options.durable,
                "namespace": lambda queue: queue.subscriber.namespace,
                "waiting": lambda queue: len(queue.inside.queue),
                "unacknowledged": lambda queue: queue.inside.unacknowledged,
                "bytes": lambda queue: queue.inside.queue.nbytes,
                "consumer_count": lambda queue: len(queue.consumers),
                "oldest_seconds": lambda queue: age_of(queue, operated.clock()),
                "discarded": lambda queue: queue.inside.discards,
            },
            searched=("queue", "user"), exact=("queue", "user", "durable", "namespace"), flags=("durable",),
        )
        self.letters: Listing[WorkQueue] = Listing(
            rows=lambda after: (each if each.options.dead_letter else None for each in self._rows(after)),
            count=lambda: sum(1 for home in broker.everywhere() for each in home.queues if each.options.dead_letter),
            id=id_of, view=self._letters_of, keys={
                "queue": lambda queue: queue.name, "discarded": lambda queue: queue.inside.discards,
                "namespace": lambda queue: queue.subscriber.namespace,
            },
            searched=("queue",), exact=("queue", "namespace"),
        )

    def operations(self) -> tuple[Operation, ...]:
        make = partial(Operation, tag="queues")
        read = partial(make, action=Action.ADMIN_READ)
        write = partial(make, action=Action.ADMIN_WRITE, absent=True, conflicts=True)
        return (
            read("GET", "/queues", "Named queues", self.listing.page, page_of(QUEUE), self.listing.parameters()),
            read("GET", "/queues/{name}", "One queue", self.show, QUEUE, (NAME, NAMESPACE), absent=True),
            read("GET", "/queues/{name}/messages", "The oldest messages that wait in it", self.peek, PEEKED,
                 (NAME, NAMESPACE, *PEEK), absent=True),
            write("POST", "/queues/{name}/purge", "Drop what waits in it; what consumers have stays", self.purge,
                  PURGED, (NAME, NAMESPACE)),
            write("POST", "/queues/{name}/move", "Move its oldest messages elsewhere", self.move, MOVED,
                  (NAME, NAMESPACE), body=(
                      Parameter("to", str, "name of a queue; null: the topic that each was published to first",
                                least=1),
                      Parameter("count", int, "messages at most; null: all that wait now", least=1),
                  )),
            write("DELETE", "/queues/{name}", "End a queue that has neither messages nor consumers", self.remove,
                  PURGED, (
                      NAME, NAMESPACE, Parameter("if_empty", bool, "it may have consumers", default=False),
                      Parameter("force", bool, "it may have both: its messages are lost", default=False),
                  )),
            read("GET", "/dead-letters", "Queues with a dead-letter topic, and where their dead letters are",
                 self.letters.page, page_of(LETTERS), self.letters.parameters()),
        )

    def _rows(self, after: Id | None) -> Iterable[WorkQueue]:
        return chain.from_iterable([list(home.queues) for home in self._operated.broker.everywhere()])

    def _view(self, queue: WorkQueue, consumers: int = CONSUMERS_SHOWN) -> dict[str, Any]:
        view = queue_view(queue, self._operated.clock(), consumers)
        return {**view, "consumer_count": len(queue.consumers), "href": self._href(queue)}

    @staticmethod
    def _href(queue: WorkQueue) -> str:
        return href("queues", queue.name, namespace=queue.subscriber.namespace)

    def _letters_of(self, queue: WorkQueue) -> dict[str, Any]:
        letters = queue.options.dead_letter
        assert letters is not None
        home, (topic, syntax) = self._operated.home(queue.subscriber.namespace), letters[:2]
        held = []
        if syntax in SYNTAXES:
            plain, _ = home.router.reached(topic, syntax)
            owners = {each.owner.name: each.owner for each in home.router.in_force(plain[:LETTERS_REACH])}
            named = [(home.queues.get(name), owner) for name, owner in owners.items()]
            found = [each for each, owner in named if each is not None and each.subscriber is owner]
            held = [{"queue": each.name, "waiting": len(each.inside.queue), "href": self._href(each)} for each in found]
        return {
            "queue": queue.name, "dead_letter": text_of(topic), "syntax": syntax, "discarded": queue.inside.discards,
            "held_in": held, "href": self._href(queue),
            **({"namespace": home.name} if home.name else {}),
        }

    def _find(self, call: Call, name: str) -> tuple[Namespace, WorkQueue]:
        home = self._operated.home(call["namespace"])
        return home, home.queues.find(name)

    def _managed(self, call: Call, name: str) -> tuple[Namespace, WorkQueue, Subscriber]:
        """A queue that is to be changed, and by whom: who may manage it, as by any protocol. Raises NotPermitted."""
        home, queue = self._find(call, name)
        manager = self._publishers.of(call, home)
        home.queues.check_manager(manager, queue)
        return home, queue, manager

    def show(self, call: Call) -> dict[str, Any]:
        return self._view(self._find(call, call["name"])[1])

    async def peek(self, call: Call) -> dict[str, Any]:
        home, queue = self._find(call, call["name"])
        home.queues.check_reader(self._publishers.of(call, home), queue)
        return await peeked(self._operated, call, partial(peek_named, home, queue, call["limit"]))

    async def purge(self, call: Call) -> dict[str, Any]:
        home, queue, _ = self._managed(call, call["name"])
        (count,) = await self._job(lambda done: home.queue_jobs.purge(queue, done))
        call.noted["messages"] = count
        return {"messages": count}

    async def move(self, call: Call) -> dict[str, Any]:
        home, source, mover = self._managed(call, call["name"])
        to = call.body["to"]
        target = self._managed(call, to)[1] if to is not None else None
        count, stopped = await self._job(
            lambda done: home.queue_jobs.move(source, target, call.body["count"], mover, done)
        )
        call.noted["messages"] = count
        return {"messages": count, "stopped": stopped}

    async def remove(self, call: Call) -> dict[str, Any]:
        home, queue, _ = self._managed(call, call["name"])
        (count,) = await self._job(
            lambda done: home.queue_jobs.remove(queue, done, if_empty=call["if_empty"], force=call["force"])
        )
        call.noted["messages"] = count
        return {"messages": count}

    async def _job(self, begin: Callable[[Callable[..., None]], None]) -> tuple[Any, ...]:
        """What a job of a queue ends with, once it is stored."""
        done: asyncio.Future[tuple[Any, ...]] = asyncio.get_running_loop().create_future()

        def ended(*result: Any) -> None:
            if not done.done():
                done.set_result(result)

        with self._operated.acting():
            begin(ended)
        result = await done
        await self._operated.stored()
        return result


def id_of(queue: WorkQueue) -> Id:
    return (queue.subscriber.namespace, queue.name)


