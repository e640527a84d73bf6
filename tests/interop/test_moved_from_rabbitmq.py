"""The whole way over from RabbitMQ: its file, its users with their passwords, their permissions; then pika as before.

The file was written by RabbitMQ 3.10.8. ann may do everything in /, eve may write to what ends in `orders` there and
read, bob has what begins with `bob-` in the vhost shop.
"""

from collections.abc import Callable
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import AMQPConnectionError, ChannelClosedByBroker, ProbableAccessDeniedError

import fanlight.cli
from fanlight_broker import cli
from tests.conftest import StartBroker, TestBroker

EXPORT = Path(__file__).parents[1] / "data/rabbitmq/definitions_all.json"
PASSWORDS = {"ann": "wonder", "bob": "builder", "eve": "evening"}
LIMIT_SECONDS = 60.0  # for what comes at once, on a machine that is busy with something else


@pytest.fixture(scope="module")
def moved(start_module_broker: StartBroker, tmp_path_factory: pytest.TempPathFactory) -> TestBroker:
    folder = tmp_path_factory.mktemp("moved")
    users, permissions = folder / "users.toml", folder / "permissions.toml"
    assert cli.main(["user", "import", str(users), str(EXPORT)]) == 0
    with pytest.MonkeyPatch.context() as patch, permissions.open("w") as file:
        patch.setattr("sys.stdout", file)
        for vhost in ("/", "shop"):
            cli.main(["permissions", "import", "rabbitmq", str(EXPORT), "--vhost", vhost])
    broker = start_module_broker(amqp=True, amqp_vhosts="shop", users_file=users, permissions=permissions)
    broker.may_complain = True  # of what is not permitted
    address = broker.http_url.replace("http://", "http://ann:wonder@")
    assert fanlight.cli.main(["definitions", "import", str(EXPORT), "--http", address]) == 1  # some is refused
    return broker


def connect(broker: TestBroker, user: str, vhost: str = "/") -> BlockingConnection:
    return BlockingConnection(pika.ConnectionParameters(
        "127.0.0.1", broker.amqp_port, vhost, pika.PlainCredentials(user, PASSWORDS[user]),
        socket_timeout=LIMIT_SECONDS, blocked_connection_timeout=LIMIT_SECONDS,
    ))  # fmt: skip


def may(connection: BlockingConnection, act: Callable[[BlockingChannel], object]) -> bool:
    """On a channel of its own."""
    channel = connection.channel()
    channel.confirm_delivery()
    try:
        act(channel)
    except ChannelClosedByBroker as error:
        if error.reply_code != 403:
            raise
        return False
    channel.close()
    return True


def test_who_may_do_everything(moved: TestBroker) -> None:
    with connect(moved, "ann") as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("new", durable=True, arguments={"x-dead-letter-exchange": "unrouted"})
        channel.queue_bind("new", "amq.topic", "#")
        channel.basic_publish("amq.topic", "a.b", b"1", mandatory=True)
        assert channel.basic_get("new", auto_ack=True)[2] == b"1"
        channel.queue_delete("new")
    with pytest.raises((AMQPConnectionError, ProbableAccessDeniedError)):
        connect(moved, "ann", "shop")


def test_who_may_write_to_some_exchanges(moved: TestBroker) -> None:
    with connect(moved, "eve") as connection:
        assert may(connection, lambda channel: channel.basic_publish("orders", "new", b"2"))
        assert not may(connection, lambda channel: channel.basic_publish("events", "new", b"x"))
        assert not may(connection, lambda channel: channel.basic_publish("amq.topic", "eve.eve.x", b"x"))
        assert not may(connection, lambda channel: channel.basic_publish("", "orders", b"x"))
        assert not may(connection, lambda channel: channel.queue_declare("mine"))
        assert not may(connection, lambda channel: channel.queue_bind("orders", "events", "k"))
        found = connection.channel().basic_get("orders", auto_ack=True)
        assert found[2] == b"2"


def test_who_may_do_what_names_allow(moved: TestBroker) -> None:
    with connect(moved, "bob", "shop") as connection:
        assert may(connection, lambda channel: channel.basic_publish("bob-x", "a.k", b"3"))
        assert may(connection, lambda channel: channel.queue_bind("bob-q", "bob-x", "other"))
        assert not may(connection, lambda channel: channel.queue_declare("ann-q"))
        assert not may(connection, lambda channel: channel.basic_publish("amq.direct", "k", b"x"))
        assert not may(connection, lambda channel: channel.queue_bind("bob-q", "amq.direct", "k"))
        assert connection.channel().basic_get("bob-q", auto_ack=True)[2] == b"3"
    with connect(moved, "bob") as connection:  # whoever has authenticated may connect to /
        assert not may(connection, lambda channel: channel.queue_declare("bob-q"))
