"""Direct reply-to: a client gets answers without declaring a queue, as RabbitMQ has it.

    consume amq.rabbitmq.reply-to, no-ack        the channel gets a queue whose name ends with a secret
    publish, reply-to = amq.rabbitmq.reply-to    the secret name is put in its place
    answer to the default exchange, key = name   the queue's only consumer has it

The queue is not durable, nobody else may consume from it, and it ends with its consumer. To consume needs no
permission: who gets an answer was chosen by the one who asked.
"""

from typing import Final

from fanlight_broker.core.work_queue import QueueOptions
from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.queue_methods import generated
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode
from fanlight_broker.protocols.amqp.sides import ChannelSide
from fanlight_broker.protocols.amqp.vhost import ROOT_VHOST, DeclaredQueue

DIRECT_REPLY: Final = "amq.rabbitmq.reply-to"
PREFIX: Final = DIRECT_REPLY + "."


class DirectReplies:
    """Of one channel, which has at most one such consumer."""

    __slots__ = ("_connection", "_queue")

    def __init__(self, channel: ChannelSide) -> None:
        self._connection = channel.connection
        self._queue: DeclaredQueue | None = None

    @property
    def address(self) -> str:
        """What the broker writes for DIRECT_REPLY in a reply-to. Raises AmqpError 406."""
        if not self._lives(self._queue):
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, "fast reply consumer does not exist")
        assert self._queue is not None
        return self._queue.work.name

    def begin(self, method: basic.BasicConsume, now: float) -> DeclaredQueue:
        """The queue of a new consumer. Raises AmqpError 406."""
        if not method.no_ack:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, "reply consumer cannot acknowledge")
        if self._lives(self._queue):
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, "reply consumer already set")
        connection = self._connection
        work = connection.broker.queues.declare(
            connection.core_client, generated(PREFIX), (), QueueOptions(durable=False), now
        )
        work.reader = connection.subscriber
        self._queue = DeclaredQueue(work, durable=False, auto_delete=True, owner=connection)
        connection.vhost.add(self._queue)
        return self._queue

    def end(self) -> None:
        """The channel is closed. Its consumer has gone, and the queue with it, unless there was never a consumer."""
        if self._queue is not None and self._lives(self._queue):
            self._connection.broker.queues.end(self._queue.work, "auto_delete")

    def declared(self, method: entity.QueueDeclare) -> entity.QueueDeclareOk:
        """The answer to queue.declare of such a name: does it live? Raises AmqpError 404."""
        if method.queue != DIRECT_REPLY and not self._lives(self._connection.vhost.find(method.queue)):
            raise AmqpError(ReplyCode.NOT_FOUND, f"no queue '{method.queue}' in vhost '{ROOT_VHOST}'")
        return entity.QueueDeclareOk(method.queue, 0, 1)

    def _lives(self, queue: DeclaredQueue | None) -> bool:
        return queue is not None and self._connection.broker.queues.get(queue.work.name) is queue.work


def is_reply_name(name: str) -> bool:
    return name == DIRECT_REPLY or name.startswith(PREFIX)
