"""The methods of the classes exchange, queue, confirm and tx (1.6, 1.7, 1.9), with RabbitMQ's.

The fields are in the order of the specification. What is reserved there has a default, and nobody looks at it.
"""

from typing import NamedTuple

from fanlight_broker.protocols.amqp.connection_methods import NO_ARGUMENTS
from fanlight_broker.protocols.amqp.method_types import Bit, Long, Short, ShortStr, Table


class ExchangeDeclare(NamedTuple):
    reserved: Short = 0
    exchange: ShortStr = ""
    type: ShortStr = "direct"
    passive: Bit = False
    durable: Bit = False
    auto_delete: Bit = False
    internal: Bit = False
    no_wait: Bit = False
    arguments: Table = NO_ARGUMENTS


class ExchangeDeclareOk(NamedTuple):
    pass


class ExchangeDelete(NamedTuple):
    reserved: Short = 0
    exchange: ShortStr = ""
    if_unused: Bit = False
    no_wait: Bit = False


class ExchangeDeleteOk(NamedTuple):
    pass


class ExchangeBind(NamedTuple):
    reserved: Short = 0
    destination: ShortStr = ""
    source: ShortStr = ""
    routing_key: ShortStr = ""
    no_wait: Bit = False
    arguments: Table = NO_ARGUMENTS


class ExchangeBindOk(NamedTuple):
    pass


class ExchangeUnbind(NamedTuple):
    reserved: Short = 0
    destination: ShortStr = ""
    source: ShortStr = ""
    routing_key: ShortStr = ""
    no_wait: Bit = False
    arguments: Table = NO_ARGUMENTS


class ExchangeUnbindOk(NamedTuple):
    pass


class QueueDeclare(NamedTuple):
    reserved: Short = 0
    queue: ShortStr = ""
    passive: Bit = False
    durable: Bit = False
    exclusive: Bit = False
    auto_delete: Bit = False
    no_wait: Bit = False
    arguments: Table = NO_ARGUMENTS


class QueueDeclareOk(NamedTuple):
    queue: ShortStr
    message_count: Long
    consumer_count: Long


class QueueBind(NamedTuple):
    reserved: Short = 0
    queue: ShortStr = ""
    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    no_wait: Bit = False
    arguments: Table = NO_ARGUMENTS


class QueueBindOk(NamedTuple):
    pass


class QueueUnbind(NamedTuple):
    reserved: Short = 0
    queue: ShortStr = ""
    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    arguments: Table = NO_ARGUMENTS


class QueueUnbindOk(NamedTuple):
    pass


class QueuePurge(NamedTuple):
    reserved: Short = 0
    queue: ShortStr = ""
    no_wait: Bit = False


class QueuePurgeOk(NamedTuple):
    message_count: Long


class QueueDelete(NamedTuple):
    reserved: Short = 0
    queue: ShortStr = ""
    if_unused: Bit = False
    if_empty: Bit = False
    no_wait: Bit = False


class QueueDeleteOk(NamedTuple):
    message_count: Long


class ConfirmSelect(NamedTuple):
    no_wait: Bit = False


class ConfirmSelectOk(NamedTuple):
    pass


class TxSelect(NamedTuple):
    pass


class TxSelectOk(NamedTuple):
    pass


class TxCommit(NamedTuple):
    pass


class TxCommitOk(NamedTuple):
    pass


class TxRollback(NamedTuple):
    pass


class TxRollbackOk(NamedTuple):
    pass
