"""The types of exchanges by their names: how an exchange is made of what it was declared with."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.exchanges.arguments import type_name
from fanlight_broker.protocols.amqp.exchanges.consistent_hash import HashTable
from fanlight_broker.protocols.amqp.exchanges.direct import DirectTable
from fanlight_broker.protocols.amqp.exchanges.exchange import BindingTable, Destination
from fanlight_broker.protocols.amqp.exchanges.fanout import FanoutTable
from fanlight_broker.protocols.amqp.exchanges.headers import HeadersTable
from fanlight_broker.protocols.amqp.exchanges.ports import ExchangeLimits
from fanlight_broker.protocols.amqp.exchanges.topic import TopicTable
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode

ALTERNATE: Final = "alternate-exchange"
DELAYED: Final = "x-delayed-message"
DELAYED_TYPE: Final = "x-delayed-type"

PREDECLARED: Final = {
    "amq.direct": "direct", "amq.fanout": "fanout", "amq.topic": "topic", "amq.headers": "headers",
    "amq.match": "headers",
}  # fmt: skip

MakeTable = Callable[[Mapping[str, Any], Sequence[Destination | None], ExchangeLimits], BindingTable]
TABLES: Final[Mapping[str, MakeTable]] = {
    "direct": lambda arguments, by_number, limits: DirectTable(),
    "fanout": lambda arguments, by_number, limits: FanoutTable(),
    "headers": lambda arguments, by_number, limits: HeadersTable(by_number),
    "topic": lambda arguments, by_number, limits: TopicTable(by_number, limits),
    "x-consistent-hash": lambda arguments, by_number, limits: HashTable(arguments),
}


def check_type(type: str) -> None:
    """Raises AmqpError, which closes the connection, for a type that is not known."""
    if type not in TABLES and type != DELAYED:
        raise AmqpError(ReplyCode.COMMAND_INVALID, f"unknown exchange type '{type}'")


def table_of(
    type: str, arguments: Mapping[str, Any], by_number: Sequence[Destination | None], limits: ExchangeLimits
) -> BindingTable:
    """The empty table of a new exchange. Raises AmqpError for the type, or for arguments that it refuses."""
    check_type(type)
    if type == DELAYED:
        # The plug-in's own rule: routing is by another type, which is the argument's.
        type = arguments.get(DELAYED_TYPE, "")
        if not isinstance(type, str) or type not in TABLES:
            raise AmqpError(
                ReplyCode.PRECONDITION_FAILED, f"Invalid argument, '{DELAYED_TYPE}' must be an existing exchange type"
            )
    return TABLES[type](arguments, by_number, limits)


def check_alternate(name: str, vhost: str, arguments: Mapping[str, Any]) -> None:
    if ALTERNATE in arguments and not isinstance(arguments[ALTERNATE], str):
        raise AmqpError(
            ReplyCode.PRECONDITION_FAILED,
            f"invalid type '{type_name(arguments[ALTERNATE])}' for arg '{ALTERNATE}' in exchange '{name}' in vhost "
            f"'{vhost}'",
        )


def check_equal(name: str, vhost: str, current: Mapping[str, Any], received: Mapping[str, Any]) -> None:
    """Compare what an exchange has with what a client declares. Raises AmqpError for the first difference, as RabbitMQ
    names it. Arguments that nobody knows are not compared.
    """
    for flag in ("type", "durable", "auto_delete", "internal"):
        if current[flag] != received[flag]:
            raise _unequal(flag, name, vhost, f"'{_shown(received[flag])}'", f"'{_shown(current[flag])}'")
    for argument in (ALTERNATE, DELAYED_TYPE) if current["type"] == DELAYED else (ALTERNATE,):
        has, asked = current["arguments"].get(argument), received["arguments"].get(argument)
        if has != asked:
            both = has is not None and asked is not None
            raise _unequal(
                argument, name, vhost, f"'{asked}'" if both else _value(asked), f"'{has}'" if both else _value(has)
            )


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(value: object) -> str:
    return "none" if value is None else f"the value '{value}' of type '{type_name(value)}'"


def _unequal(argument: str, name: str, vhost: str, received: str, current: str) -> AmqpError:
    return AmqpError(
        ReplyCode.PRECONDITION_FAILED,
        f"inequivalent arg '{argument}' for exchange '{name}' in vhost '{vhost}': received {received} but current is "
        f"{current}",
    )
