"""The subscriptions of one client by their number, and their life on the wire: begun, made again, ended.

A subscription is entered before its OK, because messages may come right behind that; but only one that was
once confirmed is made again on a later connection by `resume`: one that was not has a caller who asks again
himself.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

from .errors import BrokerError, ConnectionLost, FanlightError, NoSuchSubscription, ReadingPaused, SubscriptionEnded
from .frames import ConsumerInfo, Delivery, Ended, QueueDelivery, Replayed, ReplayEnd
from .link import Link, State
from .replay import Replay
from .subscription import Subscription


class Subscriptions:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._by_number: dict[int, Subscription] = {}
        self._last_number = 0

    def __iter__(self) -> Iterator[Subscription]:
        return iter(list(self._by_number.values()))

    def next_number(self) -> int:
        """A number that was not used before, on any connection."""
        self._last_number += 1  # 2**32 of them outlast any process
        return self._last_number

    async def begin(self, subscription: Subscription) -> None:
        """SUBSCRIBE and await OK. Raises BrokerError, ConnectionLost, RequestTimeout."""
        number = self.next_number()
        subscription.number = number
        self._by_number[number] = subscription
        try:
            await self._link.within(None, self._confirmed(number, subscription))
        except BaseException as error:
            self._by_number.pop(number, None)
            subscription.number = None
            if not isinstance(error, BrokerError):  # given up here, and perhaps in force there
                self._link.post(self._link.encoder.unsubscribe(None, number))
            raise
        subscription.confirmed = True

    async def _confirmed(self, number: int, subscription: Subscription) -> None:
        while True:
            await self._link.connected()
            try:
                await self._ask(number, subscription)
                return
            except ConnectionLost:
                if self._link.state is not State.RECONNECTING:
                    raise

    def _ask(self, number: int, subscription: Subscription, *, first: bool = False) -> "asyncio.Future[Any]":
        encoder = self._link.encoder
        asked = self._link.ask(lambda request: subscription.request_frame(encoder, request, number), first=first)
        asked.add_done_callback(lambda answer: self._answered(subscription, answer))
        return asked

    @staticmethod
    def _answered(subscription: Subscription, answer: "asyncio.Future[Any]") -> None:
        if not answer.cancelled() and answer.exception() is None:
            subscription.answered(answer.result() or {})

    async def resume(self) -> None:
        """Subscribe again on a new connection. What is refused now ends with that error.

        Raises ConnectionLost when the connection broke meanwhile.
        """
        asked: list[tuple[Subscription, asyncio.Future[Any]]] = []
        for number, subscription in list(self._by_number.items()):
            if not subscription.confirmed:
                continue
            if subscription.wire_options() is None:
                self.forget(subscription)
            else:
                try:
                    # Before what waits in the outbox, which may be for this very subscription.
                    asked.append((subscription, self._ask(number, subscription, first=True)))
                except BrokerError as refusal:  # it is another broker, which cannot
                    self._by_number.pop(number, None)
                    subscription.finish(refusal)
        if not asked:
            return
        await asyncio.wait([answer for _, answer in asked], timeout=self._link.options.timeout)
        for subscription, answer in asked:
            error = answer.exception() if answer.done() else None
            if isinstance(error, ConnectionLost):
                raise error
            # ReadingPaused: its OK waits behind messages that nobody takes. It will come.
            if isinstance(error, FanlightError) and not isinstance(error, ReadingPaused):
                self._by_number.pop(subscription.number or 0, None)
                subscription.finish(error)

    async def end(self, subscription: Subscription, after: int | None, *, patient: bool) -> None:
        """UNSUBSCRIBE and await OK; `patient`: also while that lies behind messages that are still being
        taken.

        Raises ConnectionLost, RequestTimeout, ReadingPaused unless patient.
        """
        number = subscription.number
        if number is None or self._by_number.get(number) is not subscription:
            return
        if self._link.state is not State.CONNECTED:
            if not after:
                self.forget(subscription)
            return  # said in the SUBSCRIBE of the next connection
        encoder = self._link.encoder
        asked = self._link.ask(lambda request: encoder.unsubscribe(request, number, after))
        try:
            result = await self._link.within(None, self._patiently(asked) if patient else asked)
        except NoSuchSubscription:  # its ENDED came first
            result = {}
        if not after:
            dropped = result.get("dropped", 0)
            self.forget(subscription, dropped_by_broker=dropped if isinstance(dropped, int) else 0)

    async def _patiently(self, asked: "asyncio.Future[Any]") -> dict[str, Any]:
        while True:
            try:
                return await asked or {}
            except ReadingPaused:
                await self._link.reading.room()
                asked = self._link.ask(self._link.encoder.ping)  # its PONG comes behind that OK

    def forget(self, subscription: Subscription, *, dropped_by_broker: int = 0) -> None:
        """It is over on this side."""
        if subscription.number is not None:
            self._by_number.pop(subscription.number, None)
        subscription.finish(
            SubscriptionEnded(f"the subscription to {subscription.filter!r} has ended"),
            dropped_by_broker=dropped_by_broker,
        )

    def finish_all(self, error: FanlightError) -> None:
        for subscription in self:
            subscription.finish(error)
        self._by_number.clear()

    async def change(self, subscription: Subscription, options: dict[str, Any]) -> None:
        """CONSUMER and await OK. Does nothing without a connection: the SUBSCRIBE of the next one says it.

        Raises BrokerError, RequestTimeout, ReadingPaused.
        """
        number = subscription.number
        if number is None or self._by_number.get(number) is not subscription:
            raise FanlightError(f"the subscription to {subscription.filter!r} is not in force", code="not_begun")
        if self._link.state is State.CONNECTED:
            encoder = self._link.encoder
            with contextlib.suppress(ConnectionLost):
                await self._link.within(
                    None, self._link.ask(lambda request: encoder.consumer(request, number, options))
                )

    def grant(self, subscription: Subscription, messages: int) -> None:
        """Send CREDIT."""
        if subscription.number in self._by_number:
            self._link.post(self._link.encoder.credit(subscription.number, messages))

    async def within(self, timeout: float | None, awaitable: Any) -> Any:
        return await self._link.within(timeout, awaitable)

    def hold(self, subscription: Subscription, *, bursting: bool) -> None:
        self._link.reading.hold(subscription, bursting=bursting)

    def release(self, subscription: Subscription) -> None:
        self._link.reading.release(subscription)

    def count_dropped(self) -> None:
        self._link.stats.dropped += 1

    def count_unclaimed(self) -> None:
        self._link.stats.unclaimed += 1

    def delivered(self, frame: Delivery | QueueDelivery | Replayed, size: int) -> bool:
        """Whether it was for one of them."""
        subscription = self._by_number.get(frame.subscription)
        if subscription is None:
            return False
        subscription.deliver(frame, size)
        return True

    def replay_ended(self, frame: ReplayEnd) -> None:
        subscription = self._by_number.get(frame.subscription)
        if isinstance(subscription, Replay):
            subscription.gone_live(frame)

    def informed(self, frame: ConsumerInfo) -> None:
        subscription = self._by_number.get(frame.subscription)
        if subscription is not None:
            subscription.informed(frame.info)

    def ended(self, frame: Ended) -> None:
        subscription = self._by_number.pop(frame.subscription, None)
        if subscription is not None:
            subscription.finish_ended(frame)
