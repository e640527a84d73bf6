"""AMQP publishers of a store that refuses, on a real broker: connection.blocked, nacks, connection.unblocked."""

import signal
from pathlib import Path

import pika
import pytest
from pika.exceptions import NackError

from tests.conftest import StartBroker

LIMIT_SECONDS = 60.0


def test_publishers_hear_of_a_store_without_room_and_of_its_end(start_broker: StartBroker, tmp_path: Path) -> None:
    config = tmp_path / "f.toml"
    config.write_text("data_free_bytes_min = 0\n")
    broker = start_broker(amqp=True, data=tmp_path / "data", config=config)
    broker.wait_for(lambda: "amqp" in broker.addresses, LIMIT_SECONDS)
    heard: list[str] = []
    with pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", broker.amqp_port, socket_timeout=LIMIT_SECONDS)
    ) as connection:
        connection.add_on_connection_blocked_callback(lambda _, frame: heard.append(frame.method.reason))
        connection.add_on_connection_unblocked_callback(lambda _, frame: heard.append("unblocked"))
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("q", durable=True)
        channel.basic_publish("", "q", b"kept", pika.BasicProperties(delivery_mode=2))
        config.write_text("data_free_bytes_min = '1024TiB'\n")
        broker.may_complain = True
        broker.process.send_signal(signal.SIGHUP)
        broker.wait_for_line("store_unwell", LIMIT_SECONDS)
        assert heard == []
        with pytest.raises(NackError):
            channel.basic_publish("", "q", b"refused", pika.BasicProperties(delivery_mode=2))
        while not heard:
            connection.process_data_events(LIMIT_SECONDS)
        assert heard == ["the store has no room or fails"]
        config.write_text("data_free_bytes_min = 0\n")
        broker.process.send_signal(signal.SIGHUP)
        while len(heard) < 2:
            connection.process_data_events(LIMIT_SECONDS)
        assert heard[1] == "unblocked"
        channel.basic_publish("", "q", b"kept", pika.BasicProperties(delivery_mode=2))
        assert channel.queue_declare("q", durable=True).method.message_count == 2
