"""The story of test_amqp_clients.py with kombu, which Celery is built on, without Celery: kombu_story.py PORT."""

import sys
from typing import Any

from kombu import Connection, Exchange, Queue

DIRECT = Exchange("story-kombu", "direct", durable=True)
QUEUE = Queue("story-kombu", DIRECT, "story", durable=True)


def say(line: str) -> None:
    print(line, flush=True)


def take(connection: Connection, last: str) -> str:
    """Bodies in order, acknowledged one by one, until `last` is there; then the consumer is cancelled."""
    bodies: list[str] = []

    def work(body: str, message: Any) -> None:
        if last not in bodies:
            bodies.append(body)
            message.ack()

    with connection.Consumer([QUEUE], callbacks=[work], prefetch_count=10):
        while last not in bodies:
            connection.drain_events()
    return f"took {','.join(bodies)}"


def main(connection: Connection) -> None:
    returned: list[str] = []
    producer = connection.Producer(
        on_return=lambda error, _, key, __: returned.append(f"{error.reply_code} {error.reply_text} {key}")
    )
    for number in range(100):  # each returns when it is confirmed
        producer.publish(str(number), exchange=DIRECT, routing_key="story", declare=[QUEUE], delivery_mode=2)
    say("confirmed 100")
    producer.publish("x", exchange="", routing_key="nobody", mandatory=True)
    say(f"returned {returned[0]}")
    say(take(connection, "59"))
    QUEUE(connection.default_channel).queue_declare()
    say("ready")
    try:
        connection.drain_events()
    except connection.connection_errors:
        say("lost")
    connection.close()
    connection.ensure_connection(interval_start=0.05, interval_step=0)
    say(take(connection, "99"))


with Connection(f"amqp://127.0.0.1:{sys.argv[1]}//", transport_options={"confirm_publish": True}) as connection:
    main(connection)
say("done")
