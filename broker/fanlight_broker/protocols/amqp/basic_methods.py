"""The methods of the class basic (1.8), with RabbitMQ's.

The fields are in the order of the specification. What is reserved there has a default, and nobody looks at it.
"""

from typing import NamedTuple

from fanlight_broker.protocols.amqp.connection_methods import NO_ARGUMENTS
from fanlight_broker.protocols.amqp.method_types import Bit, Long, LongLong, Short, ShortStr, Table


class BasicQos(NamedTuple):
    prefetch_size: Long = 0
    prefetch_count: Short = 0
    global_: Bit = False


class BasicQosOk(NamedTuple):
    pass


class BasicConsume(NamedTuple):
    reserved: Short = 0
    queue: ShortStr = ""
    consumer_tag: ShortStr = ""
    no_local: Bit = False
    no_ack: Bit = False
    exclusive: Bit = False
    no_wait: Bit = False
    arguments: Table = NO_ARGUMENTS


class BasicConsumeOk(NamedTuple):
    consumer_tag: ShortStr


class BasicCancel(NamedTuple):
    consumer_tag: ShortStr
    no_wait: Bit = False


class BasicCancelOk(NamedTuple):
    consumer_tag: ShortStr


class BasicPublish(NamedTuple):
    reserved: Short = 0
    exchange: ShortStr = ""
    routing_key: ShortStr = ""
    mandatory: Bit = False
    immediate: Bit = False


class BasicReturn(NamedTuple):
    reply_code: Short
    reply_text: ShortStr
    exchange: ShortStr
    routing_key: ShortStr


class BasicDeliver(NamedTuple):
    consumer_tag: ShortStr
    delivery_tag: LongLong
    redelivered: Bit
    exchange: ShortStr
    routing_key: ShortStr


class BasicGet(NamedTuple):
    reserved: Short = 0
    queue: ShortStr = ""
    no_ack: Bit = False


class BasicGetOk(NamedTuple):
    delivery_tag: LongLong
    redelivered: Bit
    exchange: ShortStr
    routing_key: ShortStr
    message_count: Long


class BasicGetEmpty(NamedTuple):
    reserved: ShortStr = ""


class BasicAck(NamedTuple):
    delivery_tag: LongLong = 0
    multiple: Bit = False


class BasicReject(NamedTuple):
    delivery_tag: LongLong
    requeue: Bit = True


class BasicRecoverAsync(NamedTuple):
    requeue: Bit = False


class BasicRecover(NamedTuple):
    requeue: Bit = False


class BasicRecoverOk(NamedTuple):
    pass


class BasicNack(NamedTuple):
    delivery_tag: LongLong = 0
    multiple: Bit = False
    requeue: Bit = True
