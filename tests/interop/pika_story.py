"""The story of test_amqp_clients.py with pika's clients of callbacks: pika_story.py PORT select|asyncio.

Confirms come to a callback with `multiple` or without; deliveries, returns and the loss of the connection as well.
"""

import socket
import sys
import time
from collections.abc import Callable
from typing import Any

import pika
from pika.adapters.asyncio_connection import AsyncioConnection

KIND = {"select": pika.SelectConnection, "asyncio": AsyncioConnection}[sys.argv[2]]
QUEUE = f"story-{sys.argv[2]}"
PARAMETERS = pika.ConnectionParameters("127.0.0.1", int(sys.argv[1]))
NO_CHANGE = pika.BasicProperties(delivery_mode=2)


def say(line: str) -> None:
    print(line, flush=True)


def wait_for_broker() -> None:
    """Until it answers: pika 1.4 raises ValueError in its loop if a connection is reset at once, as by a dying port."""
    while True:
        try:
            with socket.create_connection((PARAMETERS.host, PARAMETERS.port)) as probe:
                probe.sendall(b"AMQP\0\0\x09\x01")
                if probe.recv(1):
                    return
        except OSError:
            pass
        time.sleep(0.05)


class Story:
    def __init__(self) -> None:
        self.returned: list[str] = []
        self.unconfirmed: set[int] = set()
        self.again = False
        self.connect(self.publish)

    def connect(self, then: Callable[[], None]) -> None:
        def opened(channel: Any) -> None:
            self.channel = channel
            channel.queue_declare(QUEUE, durable=True, callback=lambda _: then())

        self.connection = KIND(
            PARAMETERS,
            on_open_callback=lambda connection: connection.channel(on_open_callback=opened),
            on_open_error_callback=lambda connection, _: connection.ioloop.call_later(0.05, lambda: self.connect(then)),
            on_close_callback=self.closed,
            **({"custom_ioloop": self.connection.ioloop} if hasattr(self, "connection") else {}),
        )

    def publish(self) -> None:
        self.channel.add_on_return_callback(
            lambda _, method, *__: say(f"returned {method.reply_code} {method.reply_text} {method.routing_key}")
        )
        self.channel.confirm_delivery(self.confirmed, callback=lambda _: self.publish_all())

    def publish_all(self) -> None:
        self.unconfirmed = {*range(1, 102)}
        for number in range(100):
            self.channel.basic_publish("", QUEUE, b"%d" % number, NO_CHANGE)
        self.channel.basic_publish("", "nobody", b"x", mandatory=True)

    def confirmed(self, frame: Any) -> None:
        assert isinstance(frame.method, pika.spec.Basic.Ack)
        tag = frame.method.delivery_tag
        self.unconfirmed -= {*range(1, tag + 1)} if frame.method.multiple else {tag}
        if not self.unconfirmed:
            say("confirmed 100")
            self.channel.basic_qos(prefetch_count=10, callback=lambda _: self.take("59", self.settle))

    def take(self, last: str, then: Callable[[], None]) -> None:
        bodies: list[str] = []

        def work(channel: Any, method: Any, _: Any, body: bytes) -> None:
            if last not in bodies:
                bodies.append(body.decode())
                channel.basic_ack(method.delivery_tag)
                if last in bodies:
                    say(f"took {','.join(bodies)}")
                    channel.basic_cancel(method.consumer_tag, callback=lambda _: then())

        self.channel.basic_consume(QUEUE, work)

    def settle(self) -> None:
        self.channel.queue_declare(QUEUE, durable=True, callback=lambda _: say("ready"))

    def closed(self, connection: Any, reason: Exception) -> None:
        if self.again:
            connection.ioloop.stop()
            return
        say("lost")
        self.again = True
        wait_for_broker()
        self.connect(lambda: self.take("99", self.connection_close))

    def connection_close(self) -> None:
        self.connection.close()


story = Story()
story.connection.ioloop.run_forever() if sys.argv[2] == "asyncio" else story.connection.ioloop.start()
say("done")
