"""A subscriber that is killed: prints each payload, and only then acknowledges it.

    killed_reader.py PORT CLIENT_ID TOPIC

Its first line is `present` or `new`. Run by test_killed.py.
"""

import sys
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion


def say(line: str) -> None:
    # In one write: without a buffer (PYTHONUNBUFFERED) print writes each part of a line, and a kill leaves half of it.
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    port, client_id, topic = sys.argv[1:]
    client = paho.Client(
        CallbackAPIVersion.VERSION2, client_id, clean_session=False, protocol=paho.MQTTv311, manual_ack=True
    )

    def on_connect(client: paho.Client, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        say("present" if flags.session_present else "new")
        client.subscribe(topic, 1)

    def on_subscribe(client: paho.Client, userdata: Any, number: int, reasons: Any, properties: Any) -> None:
        say("subscribed")

    def on_message(client: paho.Client, userdata: Any, message: paho.MQTTMessage) -> None:
        say(f"message {message.payload.decode()}")
        client.ack(message.mid, message.qos)

    client.on_connect, client.on_subscribe, client.on_message = on_connect, on_subscribe, on_message
    client.connect("127.0.0.1", int(port))
    client.loop_forever()


main()
