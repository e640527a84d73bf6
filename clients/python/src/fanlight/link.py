"""The link to a broker: one connection after another, what is unsent between them, and what awaits an answer.

              open()                   wire lost
    NEW ---------------> CONNECTED ---------------> RECONNECTING
     '-- fails: CLOSED       ^ '-- close() --> CLOSED <--'  |  close(), refused for good, attempts used up
                             '-------------------------------'  WELCOME

While RECONNECTING, fire-and-forget messages wait in the outbox up to its bound; whoever awaits an answer has been
told ConnectionLost. What a frame means to subscriptions is not here: see `LinkUser`.
"""

import asyncio
import inspect
import logging
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Protocol

from .answers import Answers
from .codec import Encoder
from .errors import (
    FATAL_CODES,
    ConnectionClosed,
    ConnectionLost,
    FanlightError,
    ReadingPaused,
    RequestTimeout,
    from_broker,
)
from .frames import Delivery, Ended, Error, Frame, Goodbye, Ok, Ping, Pong, Receipt, Welcome
from .handshake import from_goodbye, open_wire
from .options import Options
from .outbox import Outbox
from .stats import Stats
from .url import Address
from .wire import WRITE_HIGH_WATER, Wire

log = logging.getLogger("fanlight")

HEARTBEAT_TOKEN = 0  # requests are numbered from 1


class State(Enum):
    NEW = auto()
    CONNECTED = auto()
    RECONNECTING = auto()
    CLOSED = auto()


class LinkUser(Protocol):
    def delivery_received(self, frame: Delivery, size: int) -> None: ...

    def ended_received(self, frame: Ended) -> None: ...

    async def resume(self) -> None:
        """There is a new connection: subscribe again. Raises ConnectionLost when it broke at once."""

    def reconnected(self) -> None:
        """And they are all in force again."""

    def link_failed(self, error: FanlightError) -> None:
        """There will be no further connection."""


class Link:
    def __init__(self, address: Address, options: Options, user: LinkUser) -> None:
        self.address = address
        self.options = options
        self.state = State.NEW
        self.failure: FanlightError | None = None  # why it is CLOSED, unless close() was called
        self.encoder = Encoder(options.frame_bytes)
        self.outbox = Outbox(options.pending_bytes)
        self.answers = Answers(options.pending_requests)
        self.replies = Answers(options.pending_requests)
        self.stats = Stats()
        self.welcome: Welcome | None = None
        self._user = user
        self._wire: Wire | None = None
        self._lost: asyncio.Future[FanlightError] | None = None
        self._goodbye: FanlightError | None = None
        self._flush_scheduled = False
        self._changed = asyncio.Event()  # room in the outbox, or another state
        self._tasks: set[asyncio.Task[Any]] = set()
        self._supervisor: asyncio.Task[None] | None = None
        self._heartbeat: asyncio.TimerHandle | None = None
        self._beat_position: int | None = None  # messages queued before the PING that is out
        self._received_at_beat = 0
        self._full: set[object] = set()      # subscriptions that want reading stopped
        self._bursting: set[object] = set()  # those that cannot take a single message more
        self._reading = True
        self.answers.on_change = self.replies.on_change = self._decide_reading

    # Opening, losing, opening again.

    async def open(self) -> None:
        """The first connection. Raises ConnectError, or what the broker answered."""
        delays = (self.options.reconnect.delays() if self.options.reconnect and self.options.retry_first_connect
                  else iter(()))  # fmt: skip
        try:
            while True:
                try:
                    await self._connect()
                    break
                except (OSError, FanlightError) as error:
                    delay = None if _is_fatal(error) else next(delays, None)
                    if delay is None:
                        raise
                    log.warning("%s; next attempt in %.1f s", error, delay)
                    await asyncio.sleep(delay)
        except BaseException:
            self._set_state(State.CLOSED)
            raise
        self._supervisor = self.spawn(self._supervise())

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        lost = loop.create_future()
        self._lost, self._goodbye = lost, None
        self._wire, self.welcome = await open_wire(self.address, self.options, self.encoder, self)
        limit = self.welcome.info.get("limits", {}).get("frame_bytes")
        self.encoder.frame_bytes = limit if isinstance(limit, int) and limit > 0 else self.options.frame_bytes
        self._reading = True
        self._beat_position, self._received_at_beat = None, 0
        self._heartbeat = loop.call_later(self.options.ping_interval, self._beat)
        if not lost.done():  # the peer may have closed right behind its WELCOME
            self._set_state(State.CONNECTED)
        self._decide_reading()

    async def _supervise(self) -> None:
        backoff = self.options.reconnect
        delays = backoff.delays() if backoff else iter(())
        loop = asyncio.get_running_loop()
        while True:
            since = loop.time()
            assert self._lost is not None
            reason = await self._lost
            log.warning("connection to %s lost: %s", self.address, reason)
            self.call_hook(self.options.on_disconnect, reason)
            if backoff and loop.time() - since >= backoff.stable_seconds:
                delays = backoff.delays()
            connected = False
            while not connected:
                delay = None if _is_fatal(reason) else next(delays, None)
                if delay is None:
                    self._fail(reason)
                    return
                await asyncio.sleep(delay)
                try:
                    await self._reconnect()
                    connected = True
                except FanlightError as error:
                    log.info("attempt to reconnect failed: %s", error)
                    reason = error

    async def _reconnect(self) -> None:
        await self._connect()
        self.stats.reconnects += 1
        self.stats.unsent_kept += self.outbox.messages
        await self._user.resume()
        log.info("connected again to %s", self.address)
        self._user.reconnected()

    def wire_lost(self, wire: Wire, error: Exception | None) -> None:
        reason = self._goodbye or ConnectionLost(
            f"the connection to {self.address} was lost: {error or 'closed by the broker'}",
            code=error.code if isinstance(error, FanlightError) else None,
        )
        self._wire = None
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        if self.state is not State.CLOSED:
            self._set_state(State.RECONNECTING)
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

    def ask(self, make: Callable[[int], bytes]) -> asyncio.Future[Any]:
        """Send the frame that `make` makes for a request number; the future is its answer.

        Raises ConnectionLost when there is no connection, FrameTooLarge, LimitExceeded.
        """
        if self.state is not State.CONNECTED:
            raise self.not_connected()
        number, future = self.answers.open(self.outbox.messages_in)
        try:
            frame = make(number)
        except BaseException:
            self.answers.resolve(number, None)
            raise
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
        if wire is None or self.state is State.RECONNECTING:
            return
        was_full = self.outbox.full
        while self.outbox.size and wire.writable:
            wire.write(self.outbox.take(WRITE_HIGH_WATER))
        if was_full and not self.outbox.full:
            self._changed.set()

    def wire_writable(self) -> None:
        self.flush()

    async def flushed(self) -> None:
        """Wait until the outbox is empty."""
        self.flush()
        while self.outbox.size and self.state is not State.CLOSED:
            await self._change()

    def _schedule_flush(self) -> None:
        self._flush_scheduled = True
        asyncio.get_running_loop().call_soon(self.flush)

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def not_connected(self) -> FanlightError:
        if self.failure is not None:
            return self.failure
        if self.state is State.RECONNECTING:
            return ConnectionLost(f"there is no connection to {self.address} just now; it is being made again")
        return ConnectionClosed("the client is closed" if self.state is State.CLOSED else "the client is not connected yet")

    # Receiving.

    def frame_received(self, frame: Frame, size: int) -> None:
        if type(frame) is Delivery:
            self._user.delivery_received(frame, size)
        elif isinstance(frame, Receipt):
            self.answers.resolve(frame.request, frame.routed)
        elif isinstance(frame, Ok):
            self.answers.resolve(frame.request, frame.result or {})
        elif isinstance(frame, Pong):
            if frame.token == HEARTBEAT_TOKEN and self._beat_position is not None:
                self.answers.confirmed = max(self.answers.confirmed, self._beat_position)
                self._beat_position = None
            else:
                self.answers.resolve(frame.token, None)
        elif isinstance(frame, Ping):
            self.post(self.encoder.pong(frame.token))
        elif isinstance(frame, Ended):
            self._user.ended_received(frame)
        elif isinstance(frame, Error):
            self._error_received(frame)
        elif isinstance(frame, Goodbye):
            self._goodbye = self._goodbye or from_goodbye(frame)
            if self._wire is not None:
                self._wire.close()

    def _error_received(self, frame: Error) -> None:
        error = from_broker(frame.code, frame.text, frame.details, frame.request)
        if self.answers.refuse(frame.request, error):
            return
        self.stats.errors += 1
        if frame.code in FATAL_CODES - {"not_permitted"}:
            self._goodbye = error  # says more than the GOODBYE behind it
        log.warning("the broker answered %s: %s", frame.code, frame.text)
        self.call_hook(self.options.on_error, error)

    # Holding up the connection for a full subscription (overflow="pause").

    def hold(self, who: object, *, bursting: bool) -> None:
        """`who` is full. Reading stops, unless an answer is awaited: whoever awaits it may be the one who would make
        room, and would wait for ever. `bursting`: not even then; those who wait are told ReadingPaused."""
        self._full.add(who)
        if bursting:
            self._bursting.add(who)
        self._decide_reading()

    def release(self, who: object) -> None:
        self._full.discard(who)
        self._bursting.discard(who)
        self._decide_reading()

    def _decide_reading(self) -> None:
        if self._bursting and (self.answers or self.replies):
            # Told in a turn of its own: this may be called from within the asking.
            asyncio.get_running_loop().call_soon(self._fail_answers)
        reading = not self._bursting and (not self._full or bool(self.answers) or bool(self.replies))
        if reading != self._reading and self._wire is not None:
            self._reading = reading
            self._wire.set_reading(reading)

    def _fail_answers(self) -> None:
        if self._bursting:
            error = ReadingPaused(
                "the answer cannot be received: a subscription with overflow='pause' is full of unread messages. "
                "Give it credit=, a larger pending_messages=, or a client of its own",
                details={"subscriptions": sorted(str(who) for who in self._bursting)},
            )
            self.answers.fail_all(error, forget=False)
            self.replies.fail_all(error, forget=True)

    # The heartbeat.

    def _beat(self) -> None:
        """PING, and close when the one before was not answered: a peer that is gone without a word says nothing.

        The PING also keeps this connection from counting as idle at the broker while reading is stopped.
        """
        wire = self._wire
        if wire is None:
            return
        self._heartbeat = asyncio.get_running_loop().call_later(self.options.ping_interval, self._beat)
        if self._beat_position is not None and self._reading and wire.received == self._received_at_beat:
            wire.abort(ConnectionLost(f"nothing came for {self.options.ping_interval:g} s, not even to a PING", code="timeout"))
            return
        self._received_at_beat = wire.received
        if self._beat_position is None:
            self._beat_position = self.outbox.messages_in
        self.post(self.encoder.ping(HEARTBEAT_TOKEN))

    # Closing.

    async def close(self, goodbye: str = "normal") -> None:
        """Send what can be sent within `close_timeout`, say goodbye, close. Nothing is left running."""
        if self.state is State.CLOSED and self._supervisor is None:
            return
        if self.state is State.CONNECTED:
            try:
                async with asyncio.timeout(self.options.close_timeout):
                    await self.flushed()
                    self.post(self.encoder.goodbye(goodbye))
                    self.flush()
            except TimeoutError:
                log.warning("%d messages unsent after %g s", self.outbox.messages, self.options.close_timeout)
        self._set_state(State.CLOSED)
        if self._supervisor is not None:
            self._supervisor.cancel()
            self._supervisor = None
        if self._wire is not None and self._lost is not None:
            wire, lost = self._wire, self._lost
            wire.set_reading(True)
            wire.close()
            await asyncio.wait([lost], timeout=self.options.close_timeout)
            if not lost.done():  # the peer does not read what was written
                wire.abort(ConnectionClosed("closed"))
                await lost
        self._give_up_unsent()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _give_up_unsent(self) -> None:
        self.stats.unsent_lost += self.outbox.messages
        self.outbox.drop_transient()
        self.outbox.clear()

    # Tasks and hooks.

    def spawn(self, coroutine: Any) -> "asyncio.Task[Any]":
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task of the client failed", exc_info=error)

    def call_hook(self, hook: Callable[[Any], Any] | None, argument: Any) -> None:
        """Call a function or a coroutine function of the program's; its exceptions are logged."""
        if hook is None:
            return
        try:
            result = hook(argument)
        except Exception:
            log.exception("a hook failed: %r", hook)
            return
        if inspect.iscoroutine(result):
            self.spawn(result)


def _is_fatal(error: BaseException) -> bool:
    return isinstance(error, FanlightError) and error.code in FATAL_CODES
