"""Recognises servers that are no Fanlight broker, by the first bytes of their answer."""

_FIRST_BYTES = (
    (b"HTTP/", "an HTTP server"),
    (b"\x20", "an MQTT server"),  # a CONNACK
    (b"\x15\x03", "a server that speaks TLS"),  # an alert: HELLO is no TLS record
    (b"AMQP", "an AMQP server"),
    (b"INFO {", "a NATS server"),
    (b"-ERR", "a Redis server"),
    (b"SSH-", "an SSH server"),
)
NATIVE_PORTS = "The native protocol is on port 7420, by TLS on port 7423, unless the broker's settings say otherwise"


def who_answers(first: bytes) -> str | None:
    """The kind of server whose answer begins like this, with its article; None if it is not known."""
    return next((name for octets, name in _FIRST_BYTES if first.startswith(octets)), None)
