"""The consumers of one connection, by the numbers of their subscriptions: SUBSCRIBE with `consumer`, and what
acknowledges deliveries (section 3.9). ACK in its plain form is the lane's.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from fanlight_broker.core import errors
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.selectors import condition_of
from fanlight_broker.core.subscriber import Client
from fanlight_broker.core.topics import syntax_of
from fanlight_broker.core.work_queue import QueueConsumer
from fanlight_broker.protocols.native import frames
from fanlight_broker.protocols.native.error_codes import CODES
from fanlight_broker.protocols.native.format import DELIVERY_FORMAT
from fanlight_broker.protocols.native.lane import NativeLane
from fanlight_broker.wire.outbox import Outbox

PREFETCH: Final = 100  # deliveries, unless the client says
ACK_WAIT_SECONDS: Final = 30.0


class ConnectionConsumers:
    def __init__(self, broker: Namespace, outbox: Outbox, lane: NativeLane) -> None:
        self._broker = broker
        self._outbox = outbox
        self._lane = lane
        self._by_number: dict[int, QueueConsumer] = {}
        self._durable = False  # has there been one of a durable queue?

    def __contains__(self, number: int) -> bool:
        return number in self._by_number

    def __len__(self) -> int:
        return len(self._by_number)

    def check_number(self, number: int) -> None:
        """Raises SubscriptionInUse if it is a consumer's."""
        if number in self._by_number:
            raise errors.SubscriptionInUse(number)

    def begin(self, client: Client, frame: frames.ConsumeFrame, now: float) -> None:
        """SUBSCRIBE with `consumer`. Raises QueueInUse, and the errors of SUBSCRIBE."""
        broker, number = self._broker, frame.subscription
        self.check_number(number)
        if client.subscriber.subscriptions.numbered(number) is not None:
            raise errors.SubscriptionInUse(number)
        if len(self) + len(client.subscriber.subscriptions) >= broker.limits.subscriptions_per_client_max:
            raise errors.LimitExceeded(
                "too many subscriptions on this connection", "subscriptions_per_client_max",
                broker.limits.subscriptions_per_client_max,
            )
        binding = (frame.filter, syntax_of(frame.syntax))
        queue = broker.queues.declare(
            client, frame.consumer, (binding,), frame.options, now, frame.beginning,
            condition_of(frame.where) if frame.where is not None else None,
        )
        consumer = broker.queues.consume(
            client, number, queue, broker.variants.of(DELIVERY_FORMAT), frame.prefetch or PREFETCH,
            ACK_WAIT_SECONDS if frame.ack_wait is None else frame.ack_wait, partial(self._ended, number),
            partial(self._activated, number), paused=frame.paused,
        )
        self._by_number[number] = consumer
        self._durable |= queue.options.durable
        if self._lane.consumers is None:
            self._lane.consumers = {}
        self._lane.consumers[number] = consumer.window
        broker.queues.known(queue, partial(self._known, consumer, frame))

    def _known(self, consumer: QueueConsumer, frame: frames.ConsumeFrame, error: errors.FanlightError | None) -> None:
        """The queue can be filled with what it is to begin with, or it is over."""
        broker, queue = self._broker, consumer.queue
        if self._by_number.get(frame.subscription) is not consumer:
            return  # it has ended
        if error is not None:
            broker.queues.leave(self._forget(frame.subscription), broker.ledger.now)
            self._outbox.write(frames.error(frame.request, CODES[type(error)].name, error.text, error.details))
            return
        if queue.options.durable and not broker.position.refusing:  # else it is there already, and may be drained
            broker.acknowledgements.commit(partial(self._begun, consumer, frame), self._lane, recorded=False)
        else:
            self._begun(consumer, frame)

    def _begun(self, consumer: QueueConsumer, frame: frames.ConsumeFrame) -> None:
        """The queue is stored, if it is durable: answer, then deliver."""
        if self._by_number.get(frame.subscription) is not consumer:
            return  # it has ended
        if frame.request is not None:
            inside = consumer.queue.inside
            self._outbox.write(frames.ok(frame.request, {
                "consumer": consumer.queue.name, "waiting": len(inside.queue), "unacknowledged": inside.unacknowledged,
                **present(consumer),
            }))
        self._broker.queues.start(consumer, self._broker.ledger.now)

    def change(self, frame: frames.ChangeConsumerFrame, now: float) -> None:
        """CONSUMER. It is answered before anything is delivered."""
        consumer = self.find(frame.subscription)
        self._broker.queues.change(consumer, frame.prefetch, frame.ack_wait, frame.paused)
        if frame.request is not None:
            self._outbox.write(frames.ok(frame.request, present(consumer)))
        if consumer.started:
            self._broker.queues.start(consumer, now)

    def end(self, request: int | None, number: int, now: float) -> None:
        """UNSUBSCRIBE: what is not acknowledged goes to other consumers."""
        consumer = self._forget(number)
        self._broker.queues.leave(consumer, now)
        if request is not None:
            self._outbox.write(frames.ok(request, {"delivered": consumer.window.delivered, "dropped": 0}))

    def end_all(self, now: float) -> None:
        """The connection has ended. What one consumer gives back is not for another that goes as well."""
        for consumer in self._by_number.values():
            consumer.queue.inside.pause(consumer.window)
        for number in list(self._by_number):
            self._broker.queues.leave(self._forget(number), now)

    def _forget(self, number: int) -> QueueConsumer:
        assert self._lane.consumers is not None
        del self._lane.consumers[number]
        return self._by_number.pop(number)

    def _ended(self, number: int, reason: str) -> None:
        """The broker has ended the queue."""
        consumer = self._forget(number)
        self._outbox.write(frames.ended(number, reason, consumer.window.delivered, 0))

    def _activated(self, number: int) -> None:
        """It is the active consumer now. If it is not started, its OK says so."""
        if self._by_number[number].started:
            self._outbox.write(frames.consumer_info(number, {"active": True}))

    def drained(self, now: float) -> None:
        """The outbox has room again."""
        for consumer in self._by_number.values():
            consumer.queue.inside.go_on(consumer.window, now)

    def confirm(self, then: Callable[[], None]) -> None:
        """Answer a PING: when what was acknowledged before it is stored."""
        if self._durable:
            self._broker.queues.confirm(then, self._lane)
        else:
            then()

    def find(self, number: int) -> QueueConsumer:
        """Raises NoSuchSubscription."""
        found = self._by_number.get(number)
        if found is None:
            raise errors.NoSuchSubscription(number)
        return found

    # A delivery that is not this client's, or not any more, is no error: the broker may have given it to another.

    def acknowledge(self, frame: frames.AckFrame, now: float) -> None:
        window = self.find(frame.subscription).window
        if frame.all:
            window.acknowledge_up_to(frame.sequence, now)
        else:
            window.acknowledge(frame.sequence, now)

    def refuse(self, frame: frames.NackFrame, now: float) -> None:
        consumer = self.find(frame.subscription)
        consumer.queue.inside.refuse(consumer.window, frame.sequence, frame.delay, now)

    def reject(self, frame: frames.TermFrame, now: float) -> None:
        consumer = self.find(frame.subscription)
        consumer.queue.inside.reject(consumer.window, frame.sequence, now)

    def prolong(self, frame: frames.InProgressFrame, now: float) -> None:
        consumer = self.find(frame.subscription)
        consumer.queue.inside.prolong(consumer.window, frame.sequence, now)


def present(consumer: QueueConsumer) -> dict[str, int | float | bool]:
    """What OK says of a consumer."""
    return {
        "prefetch": consumer.window.inflight_max, "ack_wait": consumer.window.ack_wait, "paused": consumer.paused,
        "active": consumer.active,
    }
