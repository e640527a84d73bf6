"""The link to a broker: one connection after another, what is unsent between them, and what awaits an answer.

              open()                   wire lost
    NEW ---------------> CONNECTED ---------------> RECONNECTING
     '-- fails: CLOSED    ^  '-- close(): CLOSED <--'  |   close(), refused for good, attempts used up
                          '----------------------------'  WELCOME

While RECONNECTING, fire-and-forget messages wait in the outbox up to its bound; whoever awaits an answer has
got ConnectionLost. What a frame means for subscriptions is not here: see `LinkUser`.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum, auto
from typing import Any, Protocol

from . import reasons
from .answers import Answers
from .codec import Encoder
from .errors import (
    FATAL_CODES,
    BrokerError,
    ConnectionClosed,
    ConnectionLost,
    FanlightError,
    RequestTimeout,
    from_broker,
)
from .frames import (
    ConsumerInfo,
    Delivery,
    Ended,
    Error,
    Frame,
    Goodbye,
    Held,
    Ok,
    Ping,
    Pong,
    QueueDelivery,
    Receipt,
    Replayed,
    ReplayEnd,
    Welcome,
)
from .handshake import open_wire
from .heartbeat import TOKEN, Heartbeat
from .marks import Routed
from .options import Options
from .outbox import Outbox
from .reading import Reading
from .stats import Stats
from .tasks import Tasks
from .url import Address
from .wire import WRITE_HIGH_WATER, Wire

log = logging.getLogger("fanlight")


class State(Enum):
    NEW = auto()
    CONNECTED = auto()
    RECONNECTING = auto()
    CLOSED = auto()


class LinkUser(Protocol):
    def delivery_received(self, frame: Delivery | QueueDelivery | Replayed, size: int) -> None: ...

    def replay_ended_received(self, frame: ReplayEnd) -> None: ...

    def ended_received(self, frame: Ended) -> None: ...

    def consumer_info_received(self, frame: ConsumerInfo) -> None: ...

    async def resume(self) -> None:
        """There is a new connection: subscribe again. Raises ConnectionLost when it broke at once."""

    def reconnected(self) -> None:
        """And they are all in force again."""

    def link_failed(self, error: FanlightError) -> None:
        """There will be no further connection."""


class Link:
    def __init__(self, address: Address, options: Options, user: LinkUser) -> None:
        self.address = address  # the server that is, or was last, connected to
        self._others = [replace(each, others=()) for each in address.others]  # the next to be tried first
        self.options = options
        self.state = State.NEW
        self.failure: FanlightError | None = None  # why it is CLOSED, unless close() was called
        self.encoder = Encoder(options.frame_bytes)
        self.outbox = Outbox(options.pending_bytes)
        self.answers = Answers(options.pending_requests)
        self.replies = Answers(options.pending_requests)
        self.reading = Reading(self.answers, self.replies, apply=self._set_reading)
        self.stats = Stats()
        self.welcome: Welcome | None = None
        self._user = user
        self._deliver = user.delivery_received  # bound once: it is called for each message
        self._wire: Wire | None = None
        self._lost: asyncio.Future[FanlightError] | None = None
        self._refusal: BrokerError | None = None  # the last ERROR, which says more than a GOODBYE behind it
        self._goodbye: FanlightError | None = None
        self._heartbeat: Heartbeat | None = None
        self._flush_scheduled = False
        self._changed = asyncio.Event()  # the outbox was written from, or there is another state
        self.tasks = Tasks()
        self._supervisor: asyncio.Task[None] | None = None

    # Opening, losing, opening again.

    async def open(self) -> None:
        """The first connection. Raises ConnectError, or what the broker answered."""
        delays = self._delays() if self.options.retry_first_connect else iter(())
        try:
            while True:
                try:
                    await self._connect()
                    break
                except FanlightError as error:
                    delay = None if error.code in FATAL_CODES else next(delays, None)
                    if delay is None:
                        raise
                    log.warning("%s; next attempt in %.1f s", error, delay)
                    await asyncio.sleep(delay)
        except BaseException:
            self._set_state(State.CLOSED)
            raise
        self._supervisor = self.tasks.spawn(self._supervise())

    def _delays(self) -> Iterator[float]:
        return self.options.reconnect.delays() if self.options.reconnect else iter(())

    async def _connect(self) -> None:
        """To the first server that lets us in, beginning with the one of before. Raises what the last one said."""
        for left in reversed(range(1 + len(self._others))):
            try:
                await self._connect_once()
            except FanlightError as error:
                if not left or error.code in FATAL_CODES:
                    raise
                log.info("%s; trying the next server", error)
                self._others.append(self.address)
                self.address = self._others.pop(0)
            else:
                return

    async def _connect_once(self) -> None:
        lost: asyncio.Future[FanlightError] = asyncio.get_running_loop().create_future()
        self._lost = lost
        self._refusal = self._goodbye = None
        await open_wire(self.address, self.options, self.encoder, self)
        if lost.done():  # the peer closed right behind its WELCOME
            raise lost.result()
        self._set_state(State.CONNECTED)
        self._schedule_flush()

    def wire_opened(self, wire: Wire, welcome: Welcome) -> None:
        """WELCOME has come; nothing is written yet, for subscriptions go before what waits in the outbox."""
        self._wire = wire
        self.welcome = welcome
        granted = welcome.info.get("slow_policy")
        if self.options.slow_policy not in (None, granted):
            log.warning("%s does not allow slow_policy %s: it is %s", self.address, self.options.slow_policy, granted)
        limits = welcome.info.get("limits")
        limit = limits.get("frame_bytes") if isinstance(limits, dict) else None
        self.encoder.frame_bytes = limit if isinstance(limit, int) and limit > 0 else self.options.frame_bytes
        interval = self.options.ping_interval
        idle = welcome.info.get("idle_seconds")
        if isinstance(idle, int | float) and idle > 0:
            interval = min(interval, idle / 3)  # often enough not to count as idle while reading is stopped
        self._heartbeat = Heartbeat(
            wire,
            interval,
            ping=lambda: self.post(self.encoder.ping(TOKEN)),
            position=lambda: self.outbox.messages_in,
        )
        self.reading.restart()

    async def _supervise(self) -> None:
        loop = asyncio.get_running_loop()
        delays = self._delays()
        while self.state is not State.CLOSED:
            since = loop.time()
            assert self._lost is not None
            reason = await asyncio.shield(self._lost)  # close() cancels this task, and waits for the loss itself
            log.warning("connection to %s lost: %s", self.address, reason)
            self.tasks.call(self.options.on_disconnect, reason)
            if self.options.reconnect and loop.time() - since >= self.options.reconnect.stable_seconds:
                delays = self._delays()
            try:
                await self._reconnect(delays, reason)
            except FanlightError as error:
                self._fail(error)
            except Exception as error:  # a defect in this library must not leave callers waiting
                log.exception("reconnecting failed")
                self._fail(FanlightError(f"reconnecting failed: {error!r}"))

    async def _reconnect(self, delays: Iterator[float], reason: FanlightError) -> None:
        """Try until connected. Raises the last error when there is to be no further attempt."""
        while True:
            delay = None if reason.code in FATAL_CODES else next(delays, None)
            if delay is None:
                raise reason
            await asyncio.sleep(delay)
            try:
                await self._connect()
                self.stats.reconnects += 1
                self.stats.unsent_kept += self.outbox.messages
                await self._user.resume()
            except FanlightError as error:
                log.info("attempt to reconnect failed: %s", error)
                reason = error
            else:
                log.info("connected again to %s", self.address)
                self._user.reconnected()
                return

    def wire_lost(self, wire: Wire, error: Exception | None) -> None:
        reason = self._goodbye or ConnectionLost(
            f"the connection to {self.address} was lost: {reasons.of(error) if error else 'closed by the broker'}",
            code=error.code if isinstance(error, FanlightError) else None,
        )
        self._wire = None
        self.stats.held = False
        if self._heartbeat is not None:
            self._heartbeat.stop()
        self._set_state(State.RECONNECTING if self.state is State.CONNECTED else self.state)
        self.outbox.drop_transient()
        handed = self.outbox.messages_in - self.outbox.messages
        self.stats.unconfirmed += handed - self.answers.confirmed
        self.answers.confirmed = handed
        self.answers.fail_all(reason, forget=True)
        self.replies.fail_all(reason, forget=True)
        if self._lost is not None and not self._lost.done():
            self._lost.set_result(reason)

    def _fail(self, reason: FanlightError) -> None:
        """No further attempt: say so to everyone who waits."""
        self.failure = reason
        self._give_up_unsent()
        self._set_state(State.CLOSED)
        self._user.link_failed(reason)

    def _set_state(self, state: State) -> None:
        self.state = state
        self._changed.set()

    # Sending.

    def post_message(self, frame: bytes) -> None:
        """A fire-and-forget message: kept over a loss of the connection. Callers see to `outbox.full`."""
        self.outbox.put_message(frame)
        if not self._flush_scheduled:
            self._schedule_flush()

    def post(self, frame: bytes) -> None:
        """A frame of this connection only; not sent when there is none."""
        if self._wire is not None:
            self.outbox.put_transient(frame)
            if not self._flush_scheduled:
                self._schedule_flush()

    def ask(self, make: Callable[[int], bytes], *, first: bool = False) -> "asyncio.Future[Any]":
        """Send the frame that `make` makes for a request number; the future is its answer. `first`: before
        what waits in the outbox.

        Raises ConnectionLost when there is no connection, FrameTooLarge, LimitExceeded.
        """
        if self.state is not State.CONNECTED or self._wire is None:
            raise self.not_connected()
        number, future = self.answers.open(0 if first else self.outbox.messages_in)
        try:
            frame = make(number)
        except BaseException:
            self.answers.forget(number)
            future.cancel()
            raise
        if first:
            self._wire.write(frame)
        else:
            self.post(frame)
        return future

    async def answer(self, make: Callable[[int], bytes], timeout: float | None = None) -> Any:
        """As `ask`, with the waiting: for a connection, then for the answer. Raises RequestTimeout too."""
        return await self.within(timeout, self._answer(make))

    async def _answer(self, make: Callable[[int], bytes]) -> Any:
        await self.connected()
        return await self.ask(make)

    async def within(self, timeout: float | None, awaitable: Any) -> Any:
        """Await with a bound in seconds; None: the option `timeout`. Raises RequestTimeout."""
        seconds = self.options.timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(seconds):
                return await awaitable
        except RequestTimeout:
            raise
        except TimeoutError as error:
            state = "" if self.state is State.CONNECTED else f" ({self.state.name.lower()})"
            raise RequestTimeout(
                f"no answer from {self.address} within {seconds:g} s{state}", details={"seconds": seconds}
            ) from error

    async def connected(self) -> None:
        """Wait until there is a connection. Raises ConnectionClosed, or why there will be none."""
        while self.state is not State.CONNECTED:
            if self.state is not State.RECONNECTING:
                raise self.not_connected()
            await self._change()

    async def room(self) -> None:
        """Give the loop a turn, and wait while the outbox is full."""
        self.flush()
        if not self.outbox.full:
            await asyncio.sleep(0)
        while self.outbox.full:
            if self.state is State.CLOSED:
                raise self.not_connected()
            await self._change()

    def flush(self) -> None:
        """Hand to the transport what it takes."""
        self._flush_scheduled = False
        wire = self._wire
        if wire is None or self.state in (State.NEW, State.RECONNECTING):
            return
        while self.outbox.size and wire.writable:
            wire.write(self.outbox.take(WRITE_HIGH_WATER))
        self._changed.set()

    def wire_writable(self) -> None:
        self.flush()

    def _schedule_flush(self) -> None:
        self._flush_scheduled = True
        asyncio.get_running_loop().call_soon(self.flush)

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def not_connected(self) -> FanlightError:
        """Why nothing can be sent just now."""
        if self.failure is not None:
            return self.failure
        if self.state is State.RECONNECTING:
            return ConnectionLost(f"there is no connection to {self.address} just now; it is being made again")
        return ConnectionClosed("the client is closed")

    # Receiving.

    def frame_received(self, frame: Frame, size: int) -> None:
        if type(frame) is Delivery or type(frame) is Replayed or type(frame) is QueueDelivery:
            self._deliver(frame, size)
        elif isinstance(frame, Receipt):
            self.answers.resolve(frame.request, Routed(frame.routed, frame.repeated, frame.delayed, frame.id))
        elif isinstance(frame, Ok):
            self.answers.resolve(frame.request, frame.result or {})
        elif isinstance(frame, Pong):
            if frame.token == TOKEN and self._heartbeat is not None:
                self.answers.confirm(self._heartbeat.answered())
            else:
                self.answers.resolve(frame.token, None)
        elif isinstance(frame, Ping):
            self.post(self.encoder.pong(frame.token))
        elif isinstance(frame, ReplayEnd):
            self._user.replay_ended_received(frame)
        elif isinstance(frame, Ended):
            self._user.ended_received(frame)
        elif isinstance(frame, ConsumerInfo):
            self._user.consumer_info_received(frame)
        elif isinstance(frame, Error):
            self._error_received(frame)
        elif isinstance(frame, Goodbye):
            self._goodbye_received(frame)
        elif isinstance(frame, Held):
            self._held_received(frame)

    def _error_received(self, frame: Error) -> None:
        error = from_broker(frame.code, frame.text, frame.details, frame.request)
        if self.answers.refuse(frame.request, error):
            return
        self._refusal = error
        self.stats.errors += 1
        log.warning("the broker answered %s: %s", frame.code, frame.text)
        self.tasks.call(self.options.on_error, error)

    def _goodbye_received(self, frame: Goodbye) -> None:
        text = frame.text
        if text is None and self._refusal is not None and self._refusal.code == frame.reason:
            text = self._refusal.text
        self._goodbye = ConnectionLost(
            f"the broker closed the connection: {frame.reason}{f' ({text})' if text else ''}",
            code=frame.reason,
        )
        if self._wire is not None:
            self._wire.close()

    def _held_received(self, frame: Held) -> None:
        self.stats.held = frame.held
        self.stats.held_times += frame.held
        self.stats.held_seconds += frame.seconds or 0.0

    def _set_reading(self, on: bool) -> None:
        if self._wire is not None:
            self._wire.set_reading(on)
            if on and self._heartbeat is not None:
                self._heartbeat.excuse()

    # Closing.

    async def close(self) -> None:
        """Send what can be sent within `close_timeout`, and see that it is read; say goodbye, close.

        Nothing is left running. May be called twice, and at the same time.
        """
        if self.state is State.CONNECTED:
            try:
                async with asyncio.timeout(self.options.close_timeout):
                    if self.outbox.messages_in > self.answers.confirmed:
                        await self.ask(self.encoder.ping)
                    self.post(self.encoder.goodbye("normal"))
                    self._set_state(State.CLOSED)  # nothing goes behind a GOODBYE
                    await self._flushed()
            except (TimeoutError, FanlightError) as error:
                log.warning("closing with %d messages unsent: %s", self.outbox.messages, str(error) or "time is up")
        self._set_state(State.CLOSED)
        if self._supervisor is not None:
            self._supervisor.cancel()
        if self._wire is not None and self._lost is not None:
            wire, lost = self._wire, self._lost
            wire.set_reading(True)  # a transport that does not read does not see the end
            wire.close()
            await asyncio.wait([lost], timeout=self.options.close_timeout)
            if not lost.done():  # the peer does not read what was written
                wire.abort(ConnectionClosed("closed"))
                await lost
        self._give_up_unsent()
        await self.tasks.cancel()

    async def _flushed(self) -> None:
        self.flush()
        while self.outbox.size and self._wire is not None:
            await self._change()

    def _give_up_unsent(self) -> None:
        self.stats.unsent_lost += self.outbox.messages
        self.outbox.clear()
        self.answers.confirmed = self.outbox.messages_in
