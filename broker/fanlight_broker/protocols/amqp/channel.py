"""One channel (1.5): its methods go to its queues and exchanges, its consumers and its publisher.

An error of a channel closes it: its consumers leave, and what they have not acknowledged returns to its queues. It is
CLOSING then, and ignores everything, until the client has answered.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.consumers import ChannelConsumers
from fanlight_broker.protocols.amqp.direct_reply import is_reply_name
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.exchanges.arguments import VALUES_MAX, has_many
from fanlight_broker.protocols.amqp.methods import AnyMethod, method_frame
from fanlight_broker.protocols.amqp.publish import ChannelPublisher
from fanlight_broker.protocols.amqp.queue_methods import ChannelEntities
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode
from fanlight_broker.protocols.amqp.sides import ConnectionSide
from fanlight_broker.protocols.amqp.transactions import ChannelTransaction
from fanlight_broker.protocols.amqp.vhost import DeclaredQueue
from fanlight_broker.wire.hidden import hide, show

STEPS_AT_ONCE: Final = 64  # of a commit, between two looks at the time


class AmqpChannel:
    __slots__ = ("connection", "consumers", "entities", "is_open", "number", "publisher", "transaction")

    def __init__(self, connection: ConnectionSide, number: int) -> None:
        self.connection = connection
        self.number = number
        self.is_open = True  # else it waits for channel.close-ok, or is gone
        self.entities = ChannelEntities(self)
        self.consumers = ChannelConsumers(self)
        self.publisher = ChannelPublisher(self)
        connection.lane.track(number, self.consumers.tags)
        self.transaction: ChannelTransaction | None = None
        hide(*self._things)

    @property
    def _things(self) -> tuple[object, ...]:
        """They refer to each other, and live as long as the channel is open (wire/hidden.pxd)."""
        return self, self.entities, *self.consumers.things, *self.publisher.things

    def queue(self, name: str) -> DeclaredQueue:
        return self.entities.queue(name)

    @property
    def reply_address(self) -> str:
        return self.consumers.replies.address

    # -- answers ----------------------------------------------------------------------------------------------------

    def send(self, method: AnyMethod) -> None:
        """At once."""
        if self.is_open:
            self.connection.outbox.write(method_frame(self.number, method))

    def answer(
        self, method: AnyMethod, answer: AnyMethod, *, stored: bool = False, then: Callable[[], None] | None = None
    ) -> None:
        """Answer a method, unless it wants none, behind the answers to what came before it; then call `then`.

        stored  when all that it has changed is stored
        """
        silent = getattr(method, "no_wait", False)
        if self.connection.answers_at_once(stored=stored):
            self._write(None if silent else answer, then)
        else:
            self.connection.in_order(partial(self._write, None if silent else answer, then), stored=stored)

    def _write(self, answer: AnyMethod | None, then: Callable[[], None] | None) -> None:
        if self.is_open and answer is not None:
            self.connection.outbox.write(method_frame(self.number, answer))
        if self.is_open and then is not None:
            then()

    # -- methods ----------------------------------------------------------------------------------------------------

    def act(self, method: AnyMethod, now: float) -> None:
        """Raises FanlightError."""
        if self.publisher.under_way:
            raise AmqpError(ReplyCode.UNEXPECTED_FRAME, "a method in place of the content of basic.publish")
        arguments = getattr(method, "arguments", None)
        if arguments and has_many(arguments):
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"arguments with more than {VALUES_MAX} values")
        HANDLERS[type(method)](self, method, now)

    def flow(self, method: first.ChannelFlow, now: float) -> None:
        if not method.active:
            raise AmqpError(ReplyCode.NOT_IMPLEMENTED, "active=false")
        self.answer(method, first.ChannelFlowOk(True))

    def select_confirms(self, method: entity.ConfirmSelect, now: float) -> None:
        if self.transaction is not None:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, "cannot switch from tx to confirm mode")
        self.publisher.confirming = True
        self.answer(method, entity.ConfirmSelectOk())

    def declare_queue(self, method: entity.QueueDeclare, now: float) -> None:
        if is_reply_name(method.queue):
            self.answer(method, self.consumers.replies.declared(method))
        else:
            self.entities.declare(method, now)

    def answer_access(self, method: first.AccessRequest, now: float) -> None:
        self.answer(method, first.AccessRequestOk())

    def ignore(self, method: AnyMethod, now: float) -> None:
        """An answer that changes nothing."""

    # -- transactions -----------------------------------------------------------------------------------------------

    def select_transactions(self, method: entity.TxSelect, now: float) -> None:
        if self.publisher.confirming:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, "cannot switch from confirm to tx mode")
        if self.transaction is None:
            self.transaction = ChannelTransaction(self.connection)
            self.publisher.transaction = self.consumers.transaction = self.transaction
        self.answer(method, entity.TxSelectOk())

    def refuse_commit(self, method: entity.TxCommit, now: float) -> None:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, "channel is not transactional")

    def roll_back(self, method: entity.TxRollback, now: float) -> None:
        if self.transaction is None:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, "channel is not transactional")
        self.consumers.roll_back(self.transaction.drop())
        self.answer(method, entity.TxRollbackOk())

    @property
    def commits(self) -> bool:
        """Is a tx.commit for `commit`?"""
        return self.is_open and self.transaction is not None and not self.publisher.under_way

    def commit(self, now: float) -> bool:
        """Work on the tx.commit at hand, which stays at hand until it is done. False: a message is held back.

        Raises FanlightError.
        """
        transaction = self.transaction
        assert transaction is not None
        transaction.begin_commit()
        for _ in range(STEPS_AT_ONCE):
            if transaction.messages:
                kept = self.publisher.publish_held(transaction.messages[0], now)
                if kept is None:
                    return False
                transaction.messages.popleft()
                transaction.refused |= not kept
            elif transaction.answers:
                self.consumers.commit(transaction.answers.popleft(), now)
                if self.connection.at_work is not None:
                    return True  # it takes several turns: the rest of the commit comes behind that
            else:
                break
        else:
            return True
        if transaction.refused:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, "partial tx completion")
        transaction.drop()
        self.connection.lane.done()
        self.answer(entity.TxCommit(), entity.TxCommitOk(), stored=True)
        return True

    # -- its end ----------------------------------------------------------------------------------------------------

    def end(self, now: float) -> None:
        """Nothing more is sent on it but close and close-ok."""
        if self.is_open:
            self.is_open = False
            self.publisher.end()
            if self.transaction is not None:
                self.transaction.drop()
            self.consumers.end_all(now)
            show(*self._things)

    def come_apart(self) -> None:
        """Nobody asks for it any more. Its parts refer to it, and it to none of them from now on: all are freed."""
        del self.entities, self.consumers, self.publisher


HANDLERS: Final[dict[type[AnyMethod], Callable[[AmqpChannel, Any, float], None]]] = {
    first.ChannelFlow: AmqpChannel.flow,
    first.ChannelFlowOk: AmqpChannel.ignore,
    first.AccessRequest: AmqpChannel.answer_access,
    entity.ExchangeDeclare: lambda channel, method, now: channel.entities.declare_exchange(method, now),
    entity.ExchangeDelete: lambda channel, method, now: channel.entities.delete_exchange(method, now),
    entity.ExchangeBind: lambda channel, method, now: channel.entities.bind_exchange(method, now),
    entity.ExchangeUnbind: lambda channel, method, now: channel.entities.unbind_exchange(method, now),
    entity.QueueDeclare: AmqpChannel.declare_queue,
    entity.QueueBind: lambda channel, method, now: channel.entities.bind_queue(method, now),
    entity.QueueUnbind: lambda channel, method, now: channel.entities.unbind_queue(method, now),
    entity.QueuePurge: lambda channel, method, now: channel.entities.purge(method, now),
    entity.QueueDelete: lambda channel, method, now: channel.entities.delete(method, now),
    basic.BasicQos: lambda channel, method, now: channel.consumers.qos(method, now),
    basic.BasicConsume: lambda channel, method, now: channel.consumers.consume(method, now),
    basic.BasicCancel: lambda channel, method, now: channel.consumers.cancel(method, now),
    basic.BasicCancelOk: AmqpChannel.ignore,
    basic.BasicGet: lambda channel, method, now: channel.consumers.get(method, now),
    basic.BasicAck: lambda channel, method, now: channel.consumers.acknowledge(method, now),
    basic.BasicReject: lambda channel, method, now: channel.consumers.reject(method, now),
    basic.BasicNack: lambda channel, method, now: channel.consumers.refuse(method, now),
    basic.BasicRecover: lambda channel, method, now: channel.consumers.recover(method, now),
    basic.BasicRecoverAsync: lambda channel, method, now: channel.consumers.recover(method, now),
    basic.BasicPublish: lambda channel, method, now: channel.publisher.begin(method, now),
    entity.ConfirmSelect: AmqpChannel.select_confirms,
    entity.TxSelect: AmqpChannel.select_transactions,
    entity.TxCommit: AmqpChannel.refuse_commit,  # where there is a transaction, `commit` has it
    entity.TxRollback: AmqpChannel.roll_back,
}
