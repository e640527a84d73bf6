"""Consumers of one channel, its deliveries and their acknowledgements (1.8.3).

A delivery's tag counts on the channel; `ChannelTags` has whose it is, and the lane does most acknowledgements with that
alone. basic.get is a consumer, too, which is open for one message at a time and counts for nobody.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from math import inf
from typing import Final

from fanlight_broker import event_log
from fanlight_broker.core.errors import FanlightError
from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp.channel_consumer import ChannelConsumer, ConsumerEnd
from fanlight_broker.protocols.amqp.channel_tags import ChannelTags
from fanlight_broker.protocols.amqp.content_frames import DeliverWriter, get_writer
from fanlight_broker.protocols.amqp.deliveries import GIVEN_AT_ONCE, newest_first
from fanlight_broker.protocols.amqp.delivery_times import DeliveryTimes
from fanlight_broker.protocols.amqp.direct_reply import DIRECT_REPLY, DirectReplies
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.format import AmqpDeliveryFormat
from fanlight_broker.protocols.amqp.methods import method_frame
from fanlight_broker.protocols.amqp.options import CONSUMERS_MAX, GETTERS
from fanlight_broker.protocols.amqp.prefetch import (
    NO_CHANNEL_PREFETCH,
    ChannelPrefetch,
    Delivery,
    NoChannelPrefetch,
)
from fanlight_broker.protocols.amqp.queue_arguments import Asked, rank_of
from fanlight_broker.protocols.amqp.queue_methods import generated
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode
from fanlight_broker.protocols.amqp.sides import ChannelSide
from fanlight_broker.protocols.amqp.stream_consumers import (
    STREAM_OFFSET,
    StreamDeliveries,
    check_consume,
    not_supported,
    start_of,
)
from fanlight_broker.protocols.amqp.transactions import ChannelTransaction, HeldAnswer
from fanlight_broker.protocols.amqp.vhost import ROOT_VHOST, DeclaredQueue
from fanlight_broker.wire.hidden import hide
from fanlight_broker.wire.message import Variant
from fanlight_broker.wire.operating import read_soon

log: Final = event_log.get("amqp")

LAST_TAG: Final = 2**64 - 1


class ChannelConsumers:
    __slots__ = (
        "_broker", "_by_number", "_by_tag", "_channel", "_connection", "_forgetting", "_getters", "_lost_up_to",
        "_numbers", "_replies", "_times", "_together", "prefetch", "tags", "transaction",
    )  # fmt: skip

    def __init__(self, channel: ChannelSide) -> None:
        self._channel = channel
        self._connection = channel.connection
        self._broker = channel.connection.broker
        self.tags = ChannelTags()
        self._replies: DirectReplies | None = None  # of a channel that has asked for some
        self.transaction: ChannelTransaction | None = None
        self._times: DeliveryTimes | None = None  # as long as something is not acknowledged
        self.prefetch = 0  # of consumers that begin from now on; 0: the broker's limit
        self._by_tag: dict[str, ChannelConsumer] = {}
        self._by_number: dict[int, ChannelConsumer] = {}
        self._together: ChannelPrefetch | NoChannelPrefetch = NO_CHANNEL_PREFETCH
        self._getters: dict[str, ChannelConsumer] = {}  # by the queue's name
        self._numbers = 0
        self._lost_up_to = 0  # deliveries up to this tag may be of consumers that are no more
        self._forgetting = False  # `_forget_lost` is to be called

    def __len__(self) -> int:
        return len(self._by_tag)

    @property
    def prefetch_max(self) -> int:
        return self._broker.limits.prefetch_max

    def _new_number(self) -> int:
        self._numbers += 1
        return self._numbers

    @property
    def replies(self) -> DirectReplies:
        if self._replies is None:
            self._replies = DirectReplies(self._channel)
        return self._replies

    @property
    def things(self) -> tuple[object, ...]:
        """What the garbage collector need not look at as long as the channel is open (wire/hidden.pxd)."""
        return self, self.tags, self.tags.windows, self._by_tag, self._by_number

    # -- consume, cancel --------------------------------------------------------------------------------------------

    def qos(self, method: basic.BasicQos, now: float) -> None:
        if method.prefetch_size:
            raise AmqpError(ReplyCode.NOT_IMPLEMENTED, f"prefetch_size!=0 ({method.prefetch_size})")
        if method.global_:
            self._channel.answer(method, basic.BasicQosOk())
            if not isinstance(self._together, ChannelPrefetch):
                self._together = ChannelPrefetch(self.tags, self._by_number)
                self.tags.shut = self._together.shut
            self._together.limit(method.prefetch_count, now)
            return
        self.prefetch = method.prefetch_count
        self._channel.answer(method, basic.BasicQosOk())
        if self._connection.kombu:  # its QoS.update relies on it: see docs/decisions/0025-amqp.md
            for consumer in [*self._by_tag.values()]:
                if consumer.core is not None and not consumer.automatic:
                    self._broker.queues.change(consumer.core, self.prefetch or self.prefetch_max)
                    if consumer.stream is not None:
                        consumer.stream.prefetch = self.prefetch or self.prefetch_max
                    self._begin(consumer)

    def consume(self, method: basic.BasicConsume, now: float) -> None:
        client, broker = self._connection.core_client, self._broker
        answers = method.queue == DIRECT_REPLY
        tag = method.consumer_tag or generated("amq.ctag-")
        if tag in self._by_tag:
            raise AmqpError(ReplyCode.NOT_ALLOWED, f"attempt to reuse consumer tag '{tag}'")
        if len(self) >= CONSUMERS_MAX:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"a channel has at most {CONSUMERS_MAX} consumers")
        queue = self.replies.begin(method, now) if answers else self._channel.queue(method.queue)
        rank = rank_of(Asked(method.queue, ROOT_VHOST, method.arguments)) if method.arguments else 0
        if queue.exclusive_consumer or (method.exclusive and (queue.consumers or queue.work.inside.single)):
            raise AmqpError(
                ReplyCode.ACCESS_REFUSED, f"queue '{queue.work.name}' in vhost '{ROOT_VHOST}' in exclusive use"
            )
        if not answers:
            broker.queues.check_reader(client.subscriber, queue.work)
        number = self._new_number()
        counted = queue.counts_deliveries
        writer = DeliverWriter(self._channel.number, tag, self._connection.frame_max, counted=counted)
        format = AmqpDeliveryFormat(self.tags, writer, automatic=method.no_ack, counted=counted)
        variant, ended = Variant(format), ConsumerEnd(self, number)
        prefetch = self.prefetch_max if method.no_ack else self.prefetch or self.prefetch_max
        stream = self._stream(method, number, tag, queue) if queue.is_stream else None
        try:
            core = broker.queues.consume(
                client, number, queue.work, variant, prefetch, inf, ended, rank=rank,
                streams=stream is not None,
            )
        except FanlightError:
            if stream is not None:
                stream.close()
            raise
        core.window.automatic = method.no_ack
        if stream is None:
            self.tags.windows[number] = core.window
        consumer = ChannelConsumer(number, tag, queue, core.window, core, method.no_ack, stream=stream)
        self._by_tag[tag] = self._by_number[number] = consumer
        # In no cycle once it has left. What it was entered in is seen again by that.
        hide(writer, format, variant, ended, core, core.window, consumer)
        hide(self.tags.windows, self._by_tag, self._by_number)
        queue.consumers += 1
        queue.exclusive_consumer = method.exclusive
        self._channel.answer(method, basic.BasicConsumeOk(tag), then=partial(self._begin, consumer))

    def _stream(
        self, method: basic.BasicConsume, number: int, tag: str, queue: DeclaredQueue
    ) -> StreamDeliveries:
        """Raises AmqpError, NotPermitted, LimitExceeded."""
        vhost = self._connection.vhost.name
        check_consume(queue, vhost, self.prefetch, automatic=method.no_ack, together=self.tags.most > 0)
        refuse = partial(Asked(queue.name, vhost, {}).refuse, STREAM_OFFSET)
        wall = self._broker.common.wall
        start = start_of(method.arguments.get(STREAM_OFFSET), wall() if wall is not None else 0.0, refuse)

        def failed(error: FanlightError) -> None:
            log.warning("stream_failed", queue=queue.name, consumer=tag, reason=error.text)
            consumer = self._by_number.get(number)
            if consumer is not None and consumer.core is not None:
                self._broker.queues.leave(consumer.core, self._broker.ledger.now)
                self.ended(number, "replay_failed")

        return StreamDeliveries(
            self._channel, self.tags, number, tag, queue, self.prefetch, start, lambda: not self._together.full, failed
        )

    def _begin(self, consumer: ChannelConsumer) -> None:
        """Its client has consume-ok."""
        if self._by_number.get(consumer.number) is not consumer or consumer.core is None or consumer.cancelled:
            return
        if consumer.stream is not None:
            consumer.stream.start()
        if self._together.full and not consumer.automatic:
            consumer.core.started = True
        else:
            self._broker.queues.start(consumer.core, self._broker.ledger.now)

    def cancel(self, method: basic.BasicCancel, now: float) -> None:
        consumer = self._by_tag.pop(method.consumer_tag, None)
        self._channel.answer(method, basic.BasicCancelOk(method.consumer_tag))
        if consumer is None or consumer.core is None:
            return
        consumer.cancelled = True
        self.tags.windows.pop(consumer.number, None)  # its last acknowledgement ends it
        if consumer.window.in_flight and not consumer.inside.single:
            # What it has may still be acknowledged: it leaves when all of that is.
            self._broker.queues.change(consumer.core, paused=True)
        else:
            self._leave(consumer, now)
        self._connection.vhost.left(consumer.queue)

    def _leave(self, consumer: ChannelConsumer, now: float) -> None:
        """What it has not acknowledged is for others."""
        if self._by_number.pop(consumer.number, None) is None:
            return
        self.tags.windows.pop(consumer.number, None)
        if consumer.window.in_flight or consumer.stream is not None:
            self._lose_deliveries()
        if consumer.stream is not None:
            consumer.stream.close()
        if consumer.core is not None:
            self._broker.queues.leave(consumer.core, now)
        elif not consumer.window.ended:
            self._getters.pop(consumer.queue.work.name, None)
            consumer.inside.remove(consumer.window, now)

    def ended(self, number: int, reason: str) -> None:
        """The broker has ended the queue, or the consumer."""
        consumer = self._by_number.pop(number, None)
        if consumer is None:
            return
        self.tags.windows.pop(number, None)
        if consumer.stream is not None:
            consumer.stream.close()
        self._lose_deliveries()
        if consumer.cancelled or consumer.tag is None:
            return
        del self._by_tag[consumer.tag]
        consumer.queue.consumers -= 1
        if self._connection.wants_cancels:
            self._broker.turns.later(partial(self._notify_cancel, consumer.tag))

    def _notify_cancel(self, tag: str) -> None:
        if self._channel.is_open and tag not in self._by_tag:  # else a new consumer would seem to have ended
            self._connection.outbox.write(method_frame(self._channel.number, basic.BasicCancel(tag, True)))

    def _lose_deliveries(self) -> None:
        """Those of a consumer are not its any more: an acknowledgement that is on its way is no mistake."""
        self._lost_up_to = self.tags.last
        if not self._forgetting:
            self._forgetting = True
            self._broker.turns.later(self._forget_lost)

    def _forget_lost(self) -> None:
        """In one pass, for all consumers that have gone in a turn."""
        self._forgetting = False
        for number, (_, count) in self.tags.take_all_but(self._by_number).items():
            self._together.freed(number, count)
        if self._channel.is_open:
            self._together.settle(self._broker.ledger.now)
            self._broker.finish()

    def pause_all(self) -> None:
        """They are about to end: what one gives back is not for another that goes as well."""
        for consumer in self._by_number.values():
            consumer.inside.pause(consumer.window)

    def end_all(self, now: float) -> None:
        """The channel is closed, or its connection has ended."""
        self.pause_all()
        for consumer in [*self._by_number.values()]:
            live = consumer.core is not None and not consumer.cancelled
            self._leave(consumer, now)
            if live:
                self._connection.vhost.left(consumer.queue)
        if self._replies is not None:
            self._replies.end()
        self._by_tag.clear()
        self._getters.clear()
        self.tags.clear()
        self.tags.most, self.tags.shut = 0, None

    def recheck(self, now: float) -> None:
        """Its client has other permissions: consumers that it may not have any more end."""
        for consumer in [*self._by_number.values()]:
            if consumer.core is not None:
                self._broker.queues.recheck(consumer.core, now)

    def overdue(self, timeout: float, now: float) -> bool:
        """Has a delivery not been acknowledged in time? What a transaction keeps has been."""
        oldest = self.tags.oldest
        if oldest is None:
            self._times = None
            return False
        if self._times is None:
            self._times = DeliveryTimes()
        return self._times.overdue(oldest, self.tags.last, timeout, now)

    def drained(self, now: float) -> None:
        """The outbox has room again."""
        for consumer in [*self._by_number.values()]:
            if consumer.stream is not None:
                consumer.stream.pump()
            elif consumer.core is not None and consumer.core.started and not consumer.core.paused:
                consumer.inside.go_on(consumer.window, now)

    # -- get --------------------------------------------------------------------------------------------------------

    def get(self, method: basic.BasicGet, now: float) -> None:
        queue = self._channel.queue(method.queue)
        self._broker.queues.check_reader(self._connection.subscriber, queue.work)
        if queue.is_stream:
            raise not_supported("basic.get", queue, self._connection.vhost.name)
        if queue.work.unused_since is not None:
            queue.work.unused_since = now  # x-expires begins anew
        getter = self._getter(queue, automatic=method.no_ack)
        if getter.window.in_flight >= self.prefetch_max:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{self.prefetch_max} messages are not acknowledged")
        self._connection.in_order(partial(self._get_one, getter))

    def _get_one(self, getter: ChannelConsumer) -> None:
        """With everything answered that was asked before."""
        if self._by_number.get(getter.number) is not getter:
            return  # its channel is closed
        if getter.window.ended:
            self._by_number.pop(getter.number)
            self._channel.send(basic.BasicGetEmpty())
            return
        now, inside, before = self._broker.ledger.now, getter.inside, self.tags.last
        inside.change(getter.window, getter.window.in_flight + 1, inf)
        inside.begin(getter.window, now)
        inside.pause(getter.window)
        backlog = inside.queue.backlog
        if self.tags.last == before and backlog is not None and backlog.length and not backlog.at_hand:
            # What waits is on the disk: it is read, and this goes on in a turn behind that.
            read_soon(inside, partial(self._broker.turns.later, partial(self._get_one, getter)))
            return
        if self.tags.last == before:
            self._channel.send(basic.BasicGetEmpty())
        if getter.automatic:
            getter.window.acknowledge_up_to(LAST_TAG, now)
        self._drop_idle(getter, now)

    def _getter(self, queue: DeclaredQueue, *, automatic: bool) -> ChannelConsumer:
        """With automatic acknowledgement it is one of its own: its format says so."""
        name, connection = queue.work.name, self._connection
        found = self._getters.get(name)
        if found is not None and not automatic and found.queue is queue:
            return found
        if found is not None and found.queue is not queue:
            self._by_number.pop(found.number, None)  # of a queue of this name that has ended
        inside = queue.work.inside
        counted = queue.counts_deliveries
        writer = get_writer(self._channel.number, connection.frame_max, lambda: len(inside.queue), counted=counted)
        variant = Variant(AmqpDeliveryFormat(self.tags, writer, automatic=automatic, counted=counted))
        subscriber, number = connection.subscriber, GETTERS + self._new_number()
        window = inside.add(
            connection.outbox, variant, number, 1, inf, subscriber, subscriber.share.sessions, guest=True
        )
        made = self._by_number[number] = ChannelConsumer(number, None, queue, window, None, automatic)
        if not automatic:
            self._getters[name] = made
        return made

    def _drop_idle(self, consumer: ChannelConsumer, now: float) -> None:
        """One that nobody needs any more: of basic.get, or cancelled."""
        if (consumer.core is None or consumer.cancelled) and not consumer.window.in_flight:
            self._leave(consumer, now)

    # -- acknowledgements -------------------------------------------------------------------------------------------

    def acknowledge(self, method: basic.BasicAck, now: float) -> None:
        tag, multiple = method.delivery_tag, method.multiple
        if not self._kept(None, tag, multiple=multiple) and self._is_known(tag, multiple=multiple):
            if multiple:
                found = self.tags.counts_up_to(tag, take=True)
            else:
                number, inner = self.tags.take(tag)
                found = {number: (inner, 1)}
            self._acknowledge(found, now, multiple=multiple)

    def _acknowledge(self, found: Mapping[int, tuple[int, int]], now: float, *, multiple: bool) -> None:
        """found: of each consumer its last delivery, and how many."""
        for number, (tag, count) in found.items():
            self._together.freed(number, count)
            consumer = self._by_number.get(number)
            if consumer is None:
                continue
            if consumer.stream is not None:
                consumer.stream.acknowledged(count)
            elif multiple:
                consumer.window.acknowledge_up_to(tag, now)
            else:
                consumer.window.acknowledge(tag, now)
            self._drop_idle(consumer, now)
        self._together.settle(now)

    def reject(self, method: basic.BasicReject, now: float) -> None:
        if not self._kept(method.requeue, method.delivery_tag, multiple=False):
            self._refuse(method.delivery_tag, multiple=False, requeue=method.requeue)

    def refuse(self, method: basic.BasicNack, now: float) -> None:
        if not self._kept(method.requeue, method.delivery_tag, multiple=method.multiple):
            self._refuse(method.delivery_tag, multiple=method.multiple, requeue=method.requeue)

    def _refuse(self, tag: int, *, multiple: bool, requeue: bool) -> None:
        if not self._is_known(tag, multiple=multiple):
            return
        if multiple:
            self._give_back(self.tags.counts_up_to(tag), newest_first(self.tags, tag), requeue=requeue)
        else:
            number, inner = self.tags.take(tag)
            self._give_back({number: (inner, 1)}, [[(number, inner)]], requeue=requeue)

    # -- in a transaction -------------------------------------------------------------------------------------------

    def _kept(self, requeue: bool | None, tag: int, *, multiple: bool) -> bool:
        """Keep it for the commit, if the channel has transactions. Raises AmqpError 406."""
        if self.transaction is None:
            return False
        known = self._is_known(tag, multiple=multiple)
        taken = self.tags.take_apart(tag, multiple=multiple) if known else ChannelTags()
        held = HeldAnswer(requeue, multiple, taken)
        self.transaction.keep(held)
        return True

    def commit(self, answer: HeldAnswer, now: float) -> None:
        counts = answer.deliveries.counts_up_to(0)
        if answer.requeue is None:
            self._acknowledge(counts, now, multiple=answer.multiple)
        else:
            self._give_back(counts, newest_first(answer.deliveries, 0), requeue=answer.requeue)

    def roll_back(self, answers: list[HeldAnswer]) -> None:
        """The tags may be used again."""
        if answers:
            self.tags.put_back([each.deliveries for each in answers])

    def recover(self, method: basic.BasicRecover | basic.BasicRecoverAsync, now: float) -> None:
        if not method.requeue:
            raise AmqpError(ReplyCode.NOT_IMPLEMENTED, "requeue=false")
        if isinstance(method, basic.BasicRecover):
            self._channel.answer(method, basic.BasicRecoverOk())
        self._refuse(0, multiple=True, requeue=True)

    def _is_known(self, tag: int, *, multiple: bool) -> bool:
        """False: it was of a consumer that has gone. Raises AmqpError 406."""
        if tag in self.tags or (multiple and not tag):
            return True
        if 0 < tag <= self._lost_up_to:
            return multiple  # those before it may be of others
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"unknown delivery tag {tag}")

    def _give_back(
        self, found: Mapping[int, tuple[int, int]], pieces: Iterable[list[Delivery]], *, requeue: bool
    ) -> None:
        """The newest first: each goes in front of those behind it. Meanwhile their consumers get nothing.

        A channel may have taken 10,000 for each of its consumers: as many as fit into a turn, the others in the next
        ones, before anything else of this client.
        """
        touched = {number: self._by_number[number] for number in found if number in self._by_number}
        for consumer in touched.values():
            if consumer.stream is not None:
                raise not_supported("basic.nack", consumer.queue, self._connection.vhost.name)
        paused = [each for each in touched.values() if each.window.open]
        for consumer in paused:
            consumer.inside.pause(consumer.window)
        steps = self._giving_back(pieces, touched, paused, requeue=requeue)
        if sum(count for _, count in found.values()) <= GIVEN_AT_ONCE:
            for _ in steps:
                pass
        else:
            self._connection.go_through(steps)

    def _giving_back(
        self, pieces: Iterable[list[Delivery]], touched: dict[int, ChannelConsumer], paused: list[ChannelConsumer], *,
        requeue: bool,
    ) -> Iterator[None]:
        ledger = self._broker.ledger
        for piece in pieces:
            for number, tag in piece:
                self._together.freed(number)
                consumer = touched.get(number)
                if consumer is None:
                    pass
                elif requeue:
                    consumer.inside.refuse(consumer.window, tag, 0.0, ledger.now)
                else:
                    consumer.inside.reject(consumer.window, tag, ledger.now)
            yield
        for consumer in paused:
            if not consumer.window.ended and (consumer.automatic or not self._together.full):
                consumer.inside.begin(consumer.window, ledger.now)
                yield
        for number, consumer in touched.items():
            if self._by_number.get(number) is consumer:  # it may have gone meanwhile
                self._drop_idle(consumer, ledger.now)
        if self._channel.is_open:
            self._together.settle(ledger.now)
