"""Bridges as a part: the file that the setting `bridges` names, read at the start and again on SIGHUP.

    open    the file is read; near sessions of bridges that were removed while the broker was stopped end
    start   each near session collects, before listeners open; then the links are made
    reload  bridges that are as before are left alone, the others are stopped, changed or started, in a task
    drain   when clients are handed over (handover.py), links rest: no near end comes back before that is taken back

What connects is imported where there are bridges, and not before.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from fanlight_broker import logs
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.admin.view import OFFSET_MAX, Answer, PartView, Query, limit_of, number_of
from fanlight_broker.bridging.names import LOCAL_CLIENT
from fanlight_broker.config import Settings
from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.metrics import Labels, MetricFamily
from fanlight_broker.core.system_topics import SystemTopics
from fanlight_broker.core_part import Core
from fanlight_broker.net.clock import monotonic
from fanlight_broker.parts import Apply, Part, PartError

if TYPE_CHECKING:
    from pathlib import Path

    from fanlight_broker.bridging.bridge_file import Bridge, BridgeFile
    from fanlight_broker.bridging.link import BridgeLink
    from fanlight_broker.bridging.near_side import NearSide

log: Final = logs.get("bridges")

GAUGES: Final = {"bridges": "Bridges in force", "bridges_up": "Bridges whose link is up"}
FAMILIES: Final = {
    "bridge_up": ("gauge", "Whether the link of a bridge is up"),
    "bridge_waiting": ("gauge", "Messages in the session of a bridge that the far side has not acknowledged"),
    "bridge_connects": ("counter", "Links made by a bridge"),
    "bridge_failures": ("counter", "Links of a bridge that ended, and attempts that failed"),
    "bridge_messages": ("counter", "Messages that a bridge has delivered"),
    "bridge_messages_left_out": ("counter", "Messages that a bridge has taken and not delivered, by reason"),
}
DRAINING: Final = "the broker is being drained"
REASONS: Final = ("refused", "too_large", "dropped", "looped", "unmatched", "unwanted")


class Bridging(Part):
    name = "bridges"

    def __init__(self, settings: Settings, core: Core) -> None:
        self._settings, self._core = settings, core
        self._name = secrets.token_hex(4)  # of this broker in marks, if the file has none
        self._prepared: BridgeFile | None = None
        self._links: dict[str, BridgeLink] = {}
        self._near_side: NearSide | None = None
        self._switching: asyncio.Task[None] | None = None
        self._wanted: BridgeFile | None = None
        self._changing = asyncio.Lock()  # whoever starts and stops links
        self._draining = False
        self._following: asyncio.Task[None] | None = None

    # -- its life -----------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        if self._settings.bridges is not None:
            self._wanted = await asyncio.to_thread(read, self._settings.bridges)
        self._end_leftovers({each.local_client_id for each in self._bridges})

    async def start(self) -> None:
        system_topics = self._core.broker.system_topics
        if system_topics is not None:
            system_topics.sources.append(self._system_topics)
        if self._bridges:
            await self._switch()

    async def drain(self, seconds: float) -> None:
        await self._stop_links()

    async def stop(self) -> None:
        await self._stop_links()
        if self._near_side is not None:
            await self._near_side.stop()

    async def _stop_links(self) -> None:
        for task in (self._switching, self._following):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        async with self._changing:
            links, self._links = self._links, {}
            await asyncio.gather(*(each.stop() for each in links.values()))

    async def prepare(self, settings: Settings) -> None:
        self._prepared = None
        if settings.bridges is not None:
            self._prepared = await asyncio.to_thread(read, settings.bridges)

    def reload(self, settings: Settings) -> Apply:
        prepared, self._prepared = self._prepared, None

        def apply() -> None:
            self._settings, self._wanted = settings, prepared
            if self._links or self._bridges:
                before, loop = self._switching, asyncio.get_running_loop()
                self._switching = loop.create_task(self._switch_behind(before), name="bridges change")

        return apply

    async def _switch_behind(self, before: "asyncio.Task[None] | None") -> None:
        if before is not None:
            await asyncio.wait({before})
        await self._switch()

    @property
    def _bridges(self) -> "tuple[Bridge, ...]":
        return self._wanted.bridges if self._wanted is not None else ()

    # -- what an operator does ----------------------------------------------------------------------------------------

    def actions(self) -> Mapping[str, Callable[..., Any]]:
        return {"bridges": lambda: self._links, "change_bridge": self._change}

    async def _change(self, verb: str, name: str) -> "BridgeLink":
        """Pause, resume or reconnect a bridge. Raises FanlightError where the state does not allow it, KeyError."""
        async with self._changing:
            link = self._links[name]
            if verb == "reconnect":
                if link.paused or self._draining:
                    raise FanlightError(f"the bridge {name!r} rests: {link.status.reason}")
                await link.rest("an operator has asked for a new link")
                link.start()
                return link
            link.paused = verb == "pause"
            if link.paused:
                from fanlight_broker.bridging.link import PAUSED

                await link.rest(PAUSED)
            elif not self._draining:
                link.start()
            else:
                await link.rest(DRAINING)
            log.info("bridge_paused" if link.paused else "bridge_resumed", bridge=name, waiting=link.status.waiting)
            return link

    def follow(self, draining: bool) -> None:
        """Clients are handed over to other brokers, or come again: links rest meanwhile, and near sessions collect."""
        self._draining = draining
        if self._links or self._switching is not None:
            before, loop = self._following, asyncio.get_running_loop()
            self._following = loop.create_task(self._follow(before), name="bridges follow a drain")

    async def _follow(self, before: "asyncio.Task[None] | None") -> None:
        if before is not None:
            await asyncio.wait({before})
        async with self._changing:
            for link in self._links.values():
                if self._draining and not link.paused:
                    await link.rest(DRAINING)
                elif not self._draining:
                    link.start()

    async def _switch(self) -> None:
        """Make the links those that are wanted, and leave alone what is as before."""
        async with self._changing:
            await self._switch_links()

    async def _switch_links(self) -> None:
        from fanlight_broker.bridging.bridge_status import LinkDown
        from fanlight_broker.bridging.link import BridgeLink
        from fanlight_broker.bridging.near_side import NearSide

        if self._near_side is None:
            self._near_side = NearSide(self._core.broker)
        wanted = {each.name: each for each in self._bridges}
        broker = (self._wanted.broker if self._wanted is not None else "") or self._name
        for name, link in list(self._links.items()):
            bridge = wanted.get(name)
            if bridge is None or bridge.local_user != link.bridge.local_user:
                del self._links[name]
                await link.stop(forget=True)
        changed = 0
        for name, bridge in wanted.items():
            old = self._links.get(name)
            if old is not None and old.bridge == bridge and old.broker == broker:
                continue
            changed += 1
            if old is not None:
                await old.stop()
            link = self._links[name] = BridgeLink(bridge, self._near_side, broker, self._note_state)
            session = self._core.broker.sessions.get(bridge.local_client_id)
            link.paused = old is not None and old.paused
            if session is not None:
                link.adopt(session)
            try:
                await link.prepare(old.status if old is not None else None)
            except LinkDown as error:
                log.warning("bridge_not_prepared", bridge=name, reason=str(error))
            if self._draining and not link.paused:
                await link.rest(DRAINING)
            else:
                link.start()
        log.info("bridges_in_force", bridges=len(self._links), changed=changed)

    def _end_leftovers(self, names: set[str]) -> None:
        """End the sessions of bridges that were removed from the file while the broker was stopped."""
        prefix, sessions = LOCAL_CLIENT, self._core.broker.sessions
        users = {each.local_client_id: each.local_user for each in self._bridges}
        for session in [each for each in sessions if each.name.startswith(prefix)]:
            if session.name not in names or session.subscriber.user != users[session.name]:
                sessions.end(session, monotonic())

    # -- inspection ---------------------------------------------------------------------------------------------------

    def views(self) -> dict[str, PartView]:
        return {"/bridges": self._view}

    def _view(self, query: Query) -> Answer:
        limit, offset = limit_of(query), number_of(query, "offset", 0, 0, OFFSET_MAX)
        links = list(self._links.values())
        rows: list[Any] = [each.view() for each in links[offset : offset + limit]]
        return 200, {"bridges": rows, "offset": offset, "limit": limit, "total": len(links)}

    def metrics(self) -> Sequence[MetricSource]:
        return [MetricSource(GAUGES, gauges=self._gauges, families=self._families)]

    def _gauges(self) -> dict[str, float]:
        return {"bridges": len(self._links), "bridges_up": sum(each.is_up for each in self._links.values())}

    def _families(self) -> Sequence[MetricFamily]:
        if not self._links:
            return ()
        samples: dict[str, list[tuple[Labels, float]]] = {name: [] for name in FAMILIES}
        for name, link in self._links.items():
            status, of = link.status, {"bridge": name}
            samples["bridge_up"].append((of, float(link.is_up)))
            samples["bridge_waiting"].append((of, float(status.waiting)))
            samples["bridge_connects"].append((of, float(status.connects)))
            samples["bridge_failures"].append((of, float(status.failures)))
            for direction, counts in (("out", status.outward), ("in", status.inward)):
                labels = {**of, "direction": direction}
                samples["bridge_messages"].append((labels, float(counts.messages)))
                samples["bridge_messages_left_out"] += [
                    ({**labels, "reason": reason}, float(getattr(counts, reason))) for reason in REASONS
                ]
        return [
            MetricFamily(name, help, "counter" if kind == "counter" else "gauge", samples[name])
            for name, (kind, help) in FAMILIES.items()
        ]

    def _system_topics(self) -> dict[str, str]:
        """By their names below $SYS/broker."""
        found: dict[str, str] = {}
        for name, link in self._links.items():
            status = link.status
            found |= {
                f"bridge/{name}/state": str(int(link.is_up)),
                f"bridge/{name}/messages/sent": str(status.outward.messages),
                f"bridge/{name}/messages/received": str(status.inward.messages),
                f"bridge/{name}/messages/waiting": str(status.waiting),
                f"bridge/{name}/messages/dropped": str(status.outward.lost + status.inward.lost),
            }
        return found

    def _note_state(self, link: "BridgeLink") -> None:
        """The state is another one: $SYS says so at once."""
        system_topics: SystemTopics | None = self._core.broker.system_topics
        if system_topics is not None:
            system_topics.announce(f"bridge/{link.bridge.name}/state", str(int(link.is_up)), monotonic())


def read(path: "Path") -> "BridgeFile":
    """The file and what it names, in a thread. Raises PartError."""
    from fanlight_broker.bridging.bridge_file import BridgeFileError, load
    from fanlight_broker.bridging.far_side import FarSideError, check_files

    try:
        found = load(path)
        for bridge in found.bridges:
            try:
                check_files(bridge)
            except FarSideError as error:
                raise PartError(f"{path}, bridge {bridge.name}: {error}") from error
    except BridgeFileError as error:
        raise PartError("; ".join(error.problems)) from error
    return found
