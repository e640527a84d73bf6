"""The methods of the classes exchange and queue (1.6, 1.7), on the core's named queues and the vhost's exchanges."""

import secrets
from functools import partial
from typing import Final

from fanlight_broker.core.permissions import Action
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.core.work_queue import subject_of
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.exchanges.kinds import ALTERNATE
from fanlight_broker.protocols.amqp.fields import SYNTAX, TOPIC_EXCHANGE, exchange_prefix, exchange_topic
from fanlight_broker.protocols.amqp.queue_arguments import Asked, check, check_equal, known_of, listed, options_of
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode
from fanlight_broker.protocols.amqp.sides import ChannelSide
from fanlight_broker.protocols.amqp.stream_consumers import no_archive, not_supported
from fanlight_broker.protocols.amqp.vhost import ROOT_VHOST, DeclaredQueue, locked

NAME_BYTES: Final = 16  # random ones of a name that the broker chooses


def generated(prefix: str) -> str:
    """A name that the broker chooses: 22 characters behind a prefix."""
    return prefix + secrets.token_urlsafe(NAME_BYTES)


class ChannelEntities:
    """What one channel does with queues and exchanges."""

    __slots__ = ("_channel", "_connection", "last")

    def __init__(self, channel: ChannelSide) -> None:
        self._channel = channel
        self._connection = channel.connection
        self.last = ""  # the queue that was declared last on this channel

    def named(self, name: str) -> str:
        """A queue's name in a method: empty is the one declared last. Raises AmqpError."""
        if name:
            return name
        if not self.last:
            raise AmqpError(ReplyCode.NOT_FOUND, f"no previously declared queue in vhost '{ROOT_VHOST}'")
        return self.last

    def queue(self, name: str) -> DeclaredQueue:
        """Raises AmqpError."""
        return self._connection.vhost.queue(self.named(name), self._connection)

    def _check(self, action: Action, topic: bytes) -> None:
        """Raises NotPermitted."""
        connection = self._connection
        connection.broker.enforcement.check(connection.subscriber, action, topic, SYNTAXES[SYNTAX])

    def _check_queue(self, queue: DeclaredQueue) -> None:
        """May the client change or end it? Raises NotPermitted."""
        if not self._connection.restricted:
            return
        if queue.work.addressed:
            self._check(Action.QUEUE, subject_of(queue.work.name)[0])
        else:
            self._connection.broker.queues.check_manager(self._connection.subscriber, queue.work)

    # -- queues -----------------------------------------------------------------------------------------------------

    def declare(self, method: entity.QueueDeclare, now: float) -> None:
        connection = self._connection
        name = method.queue or generated("amq.gen-")
        found = connection.vhost.find(name) if method.queue else None
        if method.passive or found is not None:
            found = connection.vhost.queue(method.queue or name, connection)
            if not method.passive:
                self._check_equal(found, method)
                self._check_queue(found)
            if found.work.unused_since is not None:
                found.work.unused_since = now  # x-expires begins anew
        else:
            if name.startswith("amq.") and method.queue:
                raise AmqpError(
                    ReplyCode.ACCESS_REFUSED, f"queue name '{name}' contains reserved prefix 'amq.*'"
                )
            found = self._made(name, method, now)
        self.last = name
        if method.passive and not self._may_see(name):
            ok = entity.QueueDeclareOk(name, 0, 0)  # it is there: that is asked without a permission, as in RabbitMQ
        else:
            ok = entity.QueueDeclareOk(name, found.ready, found.consumers)
        self._channel.answer(method, ok, stored=found.durable)

    def _may_see(self, name: str) -> bool:
        """May the client know how much is in a queue?"""
        connection = self._connection
        return not connection.restricted or any(
            connection.broker.enforcement.decide(
                connection.subscriber, action, subject_of(name)[0], SYNTAXES[SYNTAX]
            ).allowed
            for action in (Action.QUEUE, Action.SUBSCRIBE)
        )

    def _made(self, name: str, method: entity.QueueDeclare, now: float) -> DeclaredQueue:
        connection = self._connection
        check(
            Asked(name, ROOT_VHOST, method.arguments), durable=method.durable, exclusive=method.exclusive,
            auto_delete=method.auto_delete,
        )
        known = known_of(method.arguments)
        self._check(Action.QUEUE, subject_of(name)[0])
        if "x-dead-letter-exchange" in known:
            self._check(Action.SUBSCRIBE, subject_of(name)[0])  # its messages go where others may read them
            self._check_letters(known["x-dead-letter-exchange"], known.get("x-dead-letter-routing-key"))
        # An exclusive queue ends with its connection: nothing of it is to survive.
        options = options_of(known, durable=method.durable and not method.exclusive)
        if options.stream is not None and connection.broker.replay_source is None:
            raise no_archive(name, connection.vhost.name)
        work = connection.broker.queues.declare(connection.core_client, name, (), options, now)
        found = DeclaredQueue(
            work, method.durable, method.auto_delete, connection if method.exclusive else None, known
        )
        connection.vhost.add(found)
        work.arguments = listed(method.arguments)
        return found

    def _check_letters(self, exchange: str, key: str | None) -> None:
        """May the client publish what dies? Raises NotPermitted. With keys of their own, each is asked about later."""
        if key is not None and exchange != TOPIC_EXCHANGE:
            self._check(Action.PUBLISH, exchange_topic(exchange, key))
        elif key is not None:
            self._check(Action.PUBLISH, key.encode())

    def _check_equal(self, found: DeclaredQueue, method: entity.QueueDeclare) -> None:
        """Raises AmqpError 406, or 405 for another `exclusive`."""
        name = found.work.name
        if method.exclusive != (found.owner is not None):
            raise AmqpError(ReplyCode.RESOURCE_LOCKED, locked(name, self._connection.vhost.name))
        flags = [
            ("durable", method.durable, found.durable), ("auto_delete", method.auto_delete, found.auto_delete),
        ]  # fmt: skip
        check_equal(Asked(name, self._connection.vhost.name, method.arguments), found.known, flags)

    def bind_queue(self, method: entity.QueueBind, now: float) -> None:
        connection = self._connection
        found = self.queue(method.queue)
        name, key = found.work.name, method.routing_key
        if not method.queue and not key:
            key = name
        if connection.restricted:
            self._check_queue(found)
            self._check_source(method.exchange, key)
        vhost = connection.vhost
        vhost.asker = connection.core_client
        vhost.exchanges.bind(name, method.exchange, key, method.arguments)
        self._channel.answer(method, entity.QueueBindOk(), stored=found.durable)

    def unbind_queue(self, method: entity.QueueUnbind, now: float) -> None:
        connection = self._connection
        found = connection.vhost.find(self.named(method.queue))
        if found is not None:
            connection.vhost.queue(found.work.name, connection)
            self._check_queue(found)
            connection.vhost.exchanges.unbind(
                found.work.name, method.exchange, method.routing_key, method.arguments
            )
        self._channel.answer(method, entity.QueueUnbindOk(), stored=found is not None and found.durable)

    def _check_source(self, exchange: str, key: str) -> None:
        """May the client have what comes from an exchange by this key? Raises NotPermitted.

        `amq.topic` checks the key itself, as a filter.
        """
        connection = self._connection
        if exchange == TOPIC_EXCHANGE or not connection.restricted:
            return
        connection.broker.enforcement.check_filter(
            connection.subscriber, Action.SUBSCRIBE, exchange_topic(exchange, key), SYNTAXES[SYNTAX], whole=True
        )

    def purge(self, method: entity.QueuePurge, now: float) -> None:
        connection = self._connection
        found = self.queue(method.queue)
        connection.broker.queues.check_reader(connection.subscriber, found.work)
        if found.is_stream:
            raise not_supported("queue.purge", found, connection.vhost.name)
        connection.broker.queue_jobs.purge(found.work, partial(self._purged, method, found.durable))

    def _purged(self, method: entity.QueuePurge, durable: bool, count: int) -> None:
        self._channel.answer(method, entity.QueuePurgeOk(count), stored=durable)

    def delete(self, method: entity.QueueDelete, now: float) -> None:
        connection = self._connection
        found = connection.vhost.find(self.named(method.queue))
        count, durable = 0, False
        if found is not None:
            name = found.work.name
            connection.vhost.queue(name, connection)
            self._check_queue(found)
            if method.if_unused and found.consumers:
                raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"queue '{name}' in vhost '{ROOT_VHOST}' in use")
            if method.if_empty and found.is_stream:
                raise not_supported("queue.delete with if-empty", found, connection.vhost.name)
            if method.if_empty and found.ready:
                raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"queue '{name}' in vhost '{ROOT_VHOST}' not empty")
            count, durable = found.ready, found.durable
            connection.broker.queues.end(found.work)
        self._channel.answer(method, entity.QueueDeleteOk(count), stored=durable)

    # -- exchanges --------------------------------------------------------------------------------------------------

    def declare_exchange(self, method: entity.ExchangeDeclare, now: float) -> None:
        if not method.passive:
            self._check(Action.QUEUE, exchange_prefix(method.exchange)[:-1])
            self._check_alternate(method)
        self._connection.vhost.exchanges.declare(
            method.exchange, method.type, durable=method.durable, auto_delete=method.auto_delete,
            internal=method.internal, arguments=method.arguments, passive=method.passive,
        )
        self._channel.answer(method, entity.ExchangeDeclareOk(), stored=method.durable)

    def _check_alternate(self, method: entity.ExchangeDeclare) -> None:
        """May the client read what the exchange gets, and publish all of that to its alternate? Raises NotPermitted."""
        alternate = method.arguments.get(ALTERNATE)
        if isinstance(alternate, str):  # else it is refused
            self._check(Action.SUBSCRIBE, exchange_prefix(method.exchange)[:-1])
            self._check_all_of(alternate)

    def _check_all_of(self, exchange: str) -> None:
        """May the client publish whatever it likes to an exchange, as what comes from others is? Raises NotPermitted.
        """
        connection = self._connection
        if connection.restricted:
            topics = b"#" if exchange == TOPIC_EXCHANGE else exchange_prefix(exchange) + b"#"
            connection.broker.enforcement.check_filter(
                connection.subscriber, Action.PUBLISH, topics, SYNTAXES[SYNTAX], whole=True
            )

    def delete_exchange(self, method: entity.ExchangeDelete, now: float) -> None:
        self._check(Action.QUEUE, exchange_prefix(method.exchange)[:-1])
        self._connection.vhost.exchanges.delete(method.exchange, if_unused=method.if_unused)
        self._channel.answer(method, entity.ExchangeDeleteOk(), stored=True)

    def bind_exchange(self, method: entity.ExchangeBind, now: float) -> None:
        self._check(Action.QUEUE, exchange_prefix(method.destination)[:-1])
        self._check_source(method.source, method.routing_key)
        if method.destination != TOPIC_EXCHANGE:  # on whose topics each message is asked about
            self._check_all_of(method.destination)
        self._connection.vhost.asker = self._connection.core_client
        self._connection.vhost.exchanges.bind_exchange(
            method.destination, method.source, method.routing_key, method.arguments
        )
        self._channel.answer(method, entity.ExchangeBindOk(), stored=True)

    def unbind_exchange(self, method: entity.ExchangeUnbind, now: float) -> None:
        self._check(Action.QUEUE, exchange_prefix(method.destination)[:-1])
        self._connection.vhost.exchanges.unbind_exchange(
            method.destination, method.source, method.routing_key, method.arguments
        )
        self._channel.answer(method, entity.ExchangeUnbindOk(), stored=True)
