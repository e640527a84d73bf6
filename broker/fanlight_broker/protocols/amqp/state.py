"""Which methods a client may send, in each phase of a connection and on its channels (1.4 to 1.9).

    HEADER --protocol header--> START --start-ok--> (login) --> TUNE --tune-ok--> OPEN --open--> RUNNING --close--> end
                                            '--> SECURE --secure-ok--'
"""

from enum import Enum, auto
from typing import Any, Final

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity


class Phase(Enum):
    """What comes next from the client."""

    HEADER = auto()
    START = auto()
    SECURE = auto()  # in a login of several messages
    TUNE = auto()
    OPEN = auto()
    RUNNING = auto()

    __hash__ = object.__hash__  # Enum's own is a call in Python for each look-up


HEADER, START, SECURE, TUNE, OPEN, RUNNING = Phase  # in Python 3.11 a class looks them up slowly

# On channel 0.
LEGAL: Final[dict[Phase, frozenset[type[Any]]]] = {
    HEADER: frozenset(),
    START: frozenset({first.ConnectionStartOk, first.ConnectionClose}),
    SECURE: frozenset({first.ConnectionSecureOk, first.ConnectionClose}),
    TUNE: frozenset({first.ConnectionTuneOk, first.ConnectionClose}),
    OPEN: frozenset({first.ConnectionOpen, first.ConnectionClose}),
    RUNNING: frozenset({first.ConnectionClose, first.ConnectionCloseOk, first.ConnectionUpdateSecret}),
}

# On the others, in RUNNING; on one that is not open channel.open alone.
ON_CHANNELS: Final[frozenset[type[Any]]] = frozenset({
    first.ChannelOpen, first.ChannelFlow, first.ChannelFlowOk, first.ChannelClose, first.ChannelCloseOk,
    first.AccessRequest,
    entity.ExchangeDeclare, entity.ExchangeDelete, entity.ExchangeBind, entity.ExchangeUnbind,
    entity.QueueDeclare, entity.QueueBind, entity.QueueUnbind, entity.QueuePurge, entity.QueueDelete,
    basic.BasicQos, basic.BasicConsume, basic.BasicCancel, basic.BasicCancelOk, basic.BasicPublish, basic.BasicGet,
    basic.BasicAck, basic.BasicReject, basic.BasicNack, basic.BasicRecover, basic.BasicRecoverAsync,
    entity.ConfirmSelect, entity.TxSelect, entity.TxCommit, entity.TxRollback,
})
