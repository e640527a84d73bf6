"""One attempt to make a link, and the link while it lasts: two connections, subscriptions, and the relays between them.

    far side: connect, CONNACK --> near side: connect, CONNACK --> subscribe on both --> messages pass --> LinkDown

An attempt is used once. What the next one must know is in BridgeStatus; what must survive is in the sessions.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, Final

from fanlight_broker import event_log
from fanlight_broker.bridging.bridge_status import BridgeStatus, LinkDown
from fanlight_broker.bridging.client_state import (
    ClientState,
    Event,
    LinkOpened,
    LinkRefused,
    Settled,
    Subscribed,
)
from fanlight_broker.bridging.far_side import far_tls, overlapping, secret_of
from fanlight_broker.bridging.interest import TOPIC as INTEREST_TOPIC
from fanlight_broker.bridging.interest import Interest
from fanlight_broker.bridging.link_end import LinkEnd
from fanlight_broker.bridging.near_side import NearSide
from fanlight_broker.bridging.relay import Relay, TryLater
from fanlight_broker.bridging.topic_mapping import TopicMapping
from fanlight_broker.net.clock import monotonic
from fanlight_broker.protocols.mqtt.packets import Connect, Publish, Subscription
from fanlight_broker.protocols.mqtt.properties import NONE, Properties
from fanlight_broker.protocols.mqtt.reason_codes import ERROR, ReasonCode
from fanlight_broker.protocols.mqtt.version import V5

log: Final = event_log.get("bridges")

TICK_SECONDS: Final = 1.0
NEVER_EXPIRES: Final = 0xFFFF_FFFF  # a Session Expiry Interval (3.1.2.11.2)
SEND, SEND_IF_NEW, SEND_NONE = 0, 1, 2  # Retain Handling (3.8.3.1)
# Tokens of what is asked for beside the routes, which have their numbers.
GONE: Final = -1
INTEREST: Final = 0


class Attempt:
    def __init__(self, status: BridgeStatus, near_side: NearSide, broker: str) -> None:
        loop = asyncio.get_running_loop()
        self._bridge, self._status, self._near_side, self._broker = status.bridge, status, near_side, broker
        self._down: asyncio.Future[str] = loop.create_future()
        self._opened: dict[str, asyncio.Future[LinkOpened]] = {
            side: loop.create_future() for side in ("near", "far")
        }
        self._ends: list[LinkEnd] = []
        self._asked: dict[tuple[str, int], str] = {}  # filters that are not answered, by side and token
        self._answered: asyncio.Future[None] | None = None  # somebody waits for an answer
        self._early: list[tuple[LinkEnd, Event]] = []  # between the two CONNACKs: at most what one read has brought
        self._relays: dict[LinkEnd, Relay] = {}  # by the source
        self._settling: dict[LinkEnd, Relay] = {}  # by the target
        self._refusals_logged: set[Relay] = set()
        self._interest = Interest(self._bridge.client_id)
        self._resending = False  # the retained messages are being sent
        status.refused_filters.clear()
        status.wanted_filters = None

    # -- what it is used for: one of these ----------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Have a near session, with its subscriptions. Raises LinkDown."""
        try:
            async with asyncio.timeout(self._bridge.connect_seconds):
                near = await self._attach(self._bridge.window)
                self._subscribe_near(near, SEND_NONE)
                near.pump()
                await self._all_answered()
        except (TimeoutError, OSError) as error:
            raise LinkDown(f"this broker did not answer: {error}") from None
        finally:
            self.close()

    async def forget(self) -> None:
        """End the near session. Raises LinkDown."""
        try:
            async with asyncio.timeout(self._bridge.connect_seconds):
                await self._attach(self._bridge.window)
        except (TimeoutError, OSError) as error:
            raise LinkDown(f"this broker did not answer: {error}") from None
        finally:
            self.close(expiry=0)

    async def run(self, host: str, port: int, up: Callable[[bool], None]) -> None:
        """Make the link, call `up` with whether the far session was present, and return by LinkDown, at its end."""
        try:
            async with asyncio.timeout(self._bridge.connect_seconds):
                far, opened = await self._connect(host, port)
                if self._bridge.only_wanted:
                    self._ask(far, INTEREST, INTEREST_TOPIC, Subscription(INTEREST_TOPIC, 1))
                    far.pump()
                    await self._all_answered()
                far.hold(held=True)  # what it sends is not kept here, before there is somebody to give it to
                near = await self._attach(min(self._bridge.window, far.state.receive_max))
        except TimeoutError:
            raise LinkDown(f"no answer within {self._bridge.connect_seconds:g} s") from None
        except OSError as error:
            raise LinkDown(f"cannot connect: {error.strerror or error}") from None
        self._join(near, far, opened)
        up(opened.present)
        for held in self._early:
            self._handle(*held)
        self._early.clear()
        self._pump()
        far.hold(held=False)
        await self._last(near, far)

    def close(self, *, expiry: int | None = None) -> None:
        """Close both connections; expiry 0: the sessions end, as far as they can be reached."""
        if self._resending and self._status.session is not None and self._status.session.cursors:
            self._status.retained_sent = False  # not all of them: the next link sends them again
        for end in self._ends:
            end.close(expiry=expiry)
        self._ends = []

    # -- the two connections ------------------------------------------------------------------------------------------

    async def _connect(self, host: str, port: int) -> tuple[LinkEnd, LinkOpened]:
        """Raises LinkDown, OSError."""
        bridge = self._bridge
        connect = Connect(
            bridge.client_id, bridge.version, clean_start=False, keep_alive=bridge.keep_alive_seconds,
            user_name=bridge.user, password=secret_of(bridge),
            properties=NONE if bridge.version is not V5 else Properties(
                session_expiry_interval=bridge.session_seconds, receive_maximum=bridge.window,
                maximum_packet_size=bridge.packet_bytes_max,
            ),
        )
        state = ClientState(connect, bridge_bit=self._status.bridge_bit, packet_max=bridge.packet_bytes_max)
        far = self._end("far", state)
        tls = far_tls(bridge) if bridge.tls else None
        name = (bridge.tls_server_name or host) if bridge.tls else None
        try:
            await asyncio.get_running_loop().create_connection(lambda: far, host, port, ssl=tls, server_hostname=name)
        except ssl.SSLCertVerificationError as error:
            raise LinkDown(f"its certificate is not accepted: {error.verify_message}") from None
        except ssl.SSLError as error:
            raise LinkDown(f"TLS: {error.reason or error}") from None
        return far, await self._opened["far"]

    async def _attach(self, window: int) -> LinkEnd:
        """Raises LinkDown, OSError."""
        bridge = self._bridge
        connect = Connect(
            bridge.local_client_id, V5, clean_start=False, user_name=bridge.local_user,
            properties=Properties(
                session_expiry_interval=NEVER_EXPIRES, receive_maximum=window,
                maximum_packet_size=bridge.packet_bytes_max,
            ),
        )
        near = self._end("near", ClientState(connect, packet_max=bridge.packet_bytes_max))
        connection = await self._near_side.connect(lambda: near)
        await self._opened["near"]
        self._status.session = connection.session
        self._status.bound()
        return near

    def _end(self, name: str, state: ClientState) -> LinkEnd:
        end = LinkEnd(name, state, self._near_side.broker.turns, self._handle, self._pump, self._fail)
        self._ends.append(end)
        return end

    def _join(self, near: LinkEnd, far: LinkEnd, opened: LinkOpened) -> None:
        """Both are there: messages pass from now on."""
        status, routes = self._status, self._bridge.routes
        outward = Relay(
            near.state, far.state, TopicMapping(routes, outward=True), status.outward, outward=True,
            broker=self._broker, wanted=self._interest.wants, crowded=lambda: far.crowded,
        )
        inward = Relay(
            far.state, near.state, TopicMapping(routes, outward=False), status.inward, outward=False,
            broker=self._broker, crowded=lambda: near.crowded,
        )
        self._relays = {near: outward, far: inward}
        self._settling = {far: outward, near: inward}
        near.other, far.other = far, near
        if not opened.present:
            status.retained_sent = False  # the far side has lost its session, and maybe all else
        self._subscribe_near(near, SEND_NONE)
        self._subscribe_far(far, opened)
        status.connects += 1

    async def _last(self, near: LinkEnd, far: LinkEnd) -> None:
        """Return when the link has ended: by LinkDown."""
        status = self._status
        while not self._down.done():
            if not status.retained_sent and not status.waiting:
                # Behind what waited, so that no value comes before an older one.
                status.retained_sent = self._resending = True
                self._subscribe_near(near, SEND)
            self._pump()
            await asyncio.wait({self._down}, timeout=TICK_SECONDS)
            status.bound()
            if not far.state.tick(monotonic()):
                raise LinkDown(f"the far side was silent for {far.state.keep_alive * 1.5:g} s")
        raise LinkDown(self._down.result())

    # -- subscriptions ------------------------------------------------------------------------------------------------

    def _subscribe_near(self, near: LinkEnd, handling: int) -> None:
        """Subscribe to the routes out, or set their options again; and end what is no route any more."""
        routes = TopicMapping(self._bridge.routes, outward=True).items()
        filters = {route.local_filter for _, route in routes}
        assert self._status.session is not None
        there = [each.filter.decode() for each in self._status.session.subscriptions]
        if gone := [each for each in there if each not in filters]:
            near.state.unsubscribe(gone, GONE)
        for number, route in routes:
            wanted = Subscription(
                route.local_filter, route.qos, no_local=True, retain_as_published=True,
                retain_handling=handling if route.retained else SEND_NONE,
            )
            self._ask(near, number, route.local_filter, wanted, route.where)

    def _subscribe_far(self, far: LinkEnd, opened: LinkOpened) -> None:
        """The same for the routes in, on the far side."""
        status, five = self._status, self._bridge.version is V5
        if not five and opened.present and status.asked_before:
            return  # the session has them, and 3.1.1 would send all that is retained once more
        if status.gone:
            far.state.unsubscribe(status.gone, GONE)
            status.gone = ()
        closed = frozenset[int]() if five or status.bridge_bit else self._closed_routes()
        for number, route in TopicMapping(self._bridge.routes, outward=False).items():
            if number not in closed:
                wanted = Subscription(
                    route.remote_filter, route.qos, no_local=five, retain_as_published=five,
                    retain_handling=0 if not five else SEND_IF_NEW if route.retained else SEND_NONE,
                )
                self._ask(far, number, route.remote_filter, wanted, route.where)
        status.asked_before = True

    def _closed_routes(self) -> frozenset[int]:
        """The routes in that stay closed, as their messages could not be told from the bridge's own (3.1.1)."""
        found = overlapping(self._bridge.routes)
        filters = [self._bridge.routes[number - 1].remote_filter for number in sorted(found)]
        for filter in filters:
            self._status.refused_filters[filter] = "would bring back what the bridge has sent there"
        if filters:
            log.warning(
                "bridge_routes_closed", bridge=self._bridge.name, filters=filters,
                reason="this side of 3.1.1 sends a bridge its own messages back; use version 5.0, or other filters",
            )
        return found

    def _ask(self, end: LinkEnd, token: int, filter: str, wanted: Subscription, where: str | None = None) -> None:
        self._asked[end.name, token] = filter
        end.state.subscribe([wanted], token, identifier=token, where=where)

    async def _all_answered(self) -> None:
        """Raises LinkDown."""
        while self._asked and not self._down.done():
            self._answered = asyncio.get_running_loop().create_future()
            waited: set[asyncio.Future[Any]] = {self._answered, self._down}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if self._down.done():
            raise LinkDown(self._down.result())

    # -- events -------------------------------------------------------------------------------------------------------

    def _handle(self, end: LinkEnd, event: Event) -> None:
        match event:
            case Publish() if event.topic == INTEREST_TOPIC and end.name == "far" and self._bridge.only_wanted:
                self._note_interest(end, event)
            case LinkOpened():
                if not self._opened[end.name].done():  # else the other side has failed meanwhile
                    self._opened[end.name].set_result(event)
            case LinkRefused():
                self._refused(end, event)
            case Subscribed():
                self._note_answer(end, event)
            case _ if end not in self._relays:
                self._early.append((end, event))
            case Publish():
                self._relays[end].take(event)
            case Settled():
                try:
                    self._settling[end].settled(event.token, event.reason)
                except TryLater as error:
                    self._fail(f"the {end.name} side: {error}")

    def _note_interest(self, far: LinkEnd, packet: Publish) -> None:
        self._interest.update(packet.payload)
        self._status.wanted_filters = len(self._interest) if self._interest.known else None
        if packet.packet_id is not None:
            far.state.acknowledge(packet.packet_id)

    def _refused(self, end: LinkEnd, event: LinkRefused) -> None:
        if (
            end.name == "far" and self._status.bridge_bit
            and event.reason is ReasonCode.UNSUPPORTED_PROTOCOL_VERSION
        ):
            self._status.bridge_bit = False
            self._fail("it does not know the bit of bridges (3.1.1); the next attempt goes without it")
            return
        text = f" ({event.text})" if event.text else ""
        self._fail(f"the {end.name} side refused: {event.reason.name.lower()}{text}")

    def _note_answer(self, end: LinkEnd, event: Subscribed) -> None:
        filter = self._asked.pop((end.name, event.token), None)
        code = event.codes[0] if event.codes else ReasonCode.SUCCESS
        if code >= ERROR and filter is not None:
            self._status.refused_filters[filter] = code.name.lower()
            log.warning(
                "bridge_filter_refused", bridge=self._bridge.name, side=end.name, filter=filter,
                reason=code.name.lower(),
            )
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(None)

    def _fail(self, reason: str) -> None:
        """The link is over. Who waits for it closes the connections."""
        if not self._down.done():
            self._down.set_result(reason)
        for future in self._opened.values():
            if not future.done():
                future.set_exception(LinkDown(reason))
                future.exception()  # nobody may wait for it

    def _pump(self) -> None:
        for end in self._ends:
            end.pump()
        for source, relay in self._relays.items():
            source.fill(full=relay.full)
        for end, relay in self._relays.items():
            if relay.refusal is not None and relay not in self._refusals_logged:
                self._refusals_logged.add(relay)  # once a link and direction: the metrics have the number
                topic, reason = relay.refusal
                log.warning(
                    "bridge_message_refused", bridge=self._bridge.name, by="far" if end.name == "near" else "near",
                    topic=topic, reason=reason.name.lower(), advice="such messages are dropped and counted",
                )
