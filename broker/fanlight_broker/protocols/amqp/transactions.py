"""Transactions of one channel (1.9): what is published and acknowledged between two commits takes effect together.

    publish: checked, kept --.
    ack, nack, reject: kept -+-- tx.commit --> published in order, returned, acknowledged --> commit-ok, when stored
                             '-- tx.rollback --> dropped; the tags may be acknowledged again

As in RabbitMQ a commit is not atomic over several queues: a message that a queue refuses closes the channel with 406
when the others have been published. The frame tx.commit stays at hand while a message of it is held back, or while it
takes several turns. What is kept counts in the inbox of the connection.
"""

from collections import deque
from typing import Final, NamedTuple

from fanlight_broker.core.errors import StoreUnavailable
from fanlight_broker.core.publishing import Direct
from fanlight_broker.protocols.amqp.basic_methods import BasicPublish
from fanlight_broker.protocols.amqp.channel_tags import ChannelTags
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.properties import PERSISTENT, ContentHeader
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode
from fanlight_broker.protocols.amqp.sides import ConnectionSide
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.outbox import Outbox

STEPS_MAX: Final = 10_000  # messages and acknowledgements of one transaction
STEP_BYTES: Final = 512  # that a step takes, beside payload, properties and deliveries
DELIVERY_BYTES: Final = 64  # two places of a row, which has twice as many as it needs at the most


class HeldMessage(NamedTuple):
    method: BasicPublish
    header: ContentHeader
    payload: bytes

    @property
    def nbytes(self) -> int:
        return STEP_BYTES + len(self.payload) + len(self.header.encoded)


class HeldAnswer(NamedTuple):
    """What a client does with deliveries. requeue: None for an acknowledgement."""

    requeue: bool | None
    multiple: bool
    deliveries: ChannelTags

    @property
    def nbytes(self) -> int:
        return STEP_BYTES + DELIVERY_BYTES * len(self.deliveries)


class HeldSender(Direct):
    """The sender of a message of a transaction: the commit waits for room, as a basic.publish does."""

    patient = True

    def __init__(self, ledger: Ledger, message: Message, connection: ConnectionSide) -> None:
        super().__init__(ledger, message, connection.outbox)
        self._lane = connection.lane

    def hold_back(self, blocker: Outbox | None) -> None:
        self._lane.hold_back(blocker)


class ChannelTransaction:
    """What is kept until the next commit or rollback, in order."""

    def __init__(self, connection: ConnectionSide) -> None:
        self._connection = connection
        self.messages: deque[HeldMessage] = deque()
        self.answers: deque[HeldAnswer] = deque()
        self.committing = False
        self.refused = False  # a message of the commit under way
        self._octets = 0

    def keep(self, step: HeldMessage | HeldAnswer) -> None:
        """Raises AmqpError 406 for one too many."""
        if len(self.messages) + len(self.answers) >= STEPS_MAX:
            raise AmqpError(
                ReplyCode.PRECONDITION_FAILED, f"a transaction has at most {STEPS_MAX} messages and acknowledgements"
            )
        if isinstance(step, HeldMessage):
            self.messages.append(step)
        else:
            self.answers.append(step)
        self._octets += step.nbytes
        self._connection.inbox.keep_outside(step.nbytes)

    def begin_commit(self) -> None:
        """Raises StoreUnavailable if what a commit promises cannot be kept now."""
        if self.committing:
            return
        self.committing = True
        if self._connection.broker.position.refusing and any(
            each.header.properties.delivery_mode == PERSISTENT for each in self.messages
        ):
            raise StoreUnavailable

    def drop(self) -> list[HeldAnswer]:
        """Nothing is kept any more. Returns the answers."""
        answers = [*self.answers]
        self.messages.clear()
        self.answers.clear()
        self.committing = self.refused = False
        octets, self._octets = self._octets, 0
        if octets:
            self._connection.inbox.keep_outside(-octets)
        return answers
