"""What the API works on: the broker, what its parts show and do, and the clock."""

import asyncio
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from fanlight_broker.admin.api.problems import ApiError
from fanlight_broker.admin.event_feed import EventFeed
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.admin.slices import Slices
from fanlight_broker.admin.view import PartView
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.ports import Inspection
from fanlight_broker.wire.message import Format

if TYPE_CHECKING:
    from aiohttp import web

Made = TypeVar("Made")


@dataclass(slots=True)
class Operated:
    """
    clock    of every `now`
    format   in which messages that come by HTTP are kept
    sources  of metrics; actions, views: of parts, by their names
    """

    broker: Broker
    inspection: Inspection
    clock: Callable[[], float]
    version: str
    format: Format
    slices: Slices
    sources: Sequence[MetricSource] = ()
    actions: Mapping[str, Callable[..., Any]] = field(default_factory=lambda: MappingProxyType({}))
    views: Mapping[str, PartView] = field(default_factory=lambda: MappingProxyType({}))
    feed: EventFeed | None = None
    folder: Path | None = None  # beside which a copy of the store has room
    lengthen: "Callable[[web.BaseRequest, float], None]" = lambda request, seconds: None
    draining: Callable[[], bool] = lambda: False

    def home(self, name: str | None) -> Namespace:
        """A namespace, without a name the root. Raises ApiError: 404."""
        if not name:
            return self.broker
        found = self.broker.namespaces.get(name)
        if found is None:
            raise ApiError(404, f"there is no namespace {name!r} at present", namespace=name)
        return found

    def homes(self, name: str | None) -> Sequence[Namespace]:
        """All namespaces, or the one of this name; nothing if it is not there."""
        if name is None:
            return self.broker.everywhere()
        return [each for each in self.broker.everywhere() if each.name == name]

    @contextmanager
    def acting(self) -> Iterator[float]:
        """A piece of work that changes something: it begins and ends as a turn does. Gives the time."""
        now = self.clock()
        self.broker.turns.begin()
        self.broker.ledger.now = now
        try:
            yield now
        finally:
            self.broker.finish()

    async def in_steps(self, steps: Generator[None, None, Made]) -> Made:
        """What a generator returns that changes something; each of its slices is a turn."""
        return await self.slices.made(steps, self.acting)

    async def stored(self) -> None:
        """Wait until all that was changed until now is as durable as the broker promises."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def tell() -> None:
            if not done.done():  # the caller may have given up
                done.set_result(None)

        self.broker.acknowledgements.commit(tell, recorded=False)
        await done

    def action(self, name: str, missing: str) -> Callable[..., Any]:
        """What a part does. Raises ApiError 409, with the text, where the part is not there or turned off."""
        found = self.actions.get(name)
        if found is None:
            raise ApiError(409, missing)
        return found
