"""Trace contexts of OpenTelemetry in the headers of messages; needs the extra [otel].

    await client.publish("orders.new", order, headers=trace_headers())

    async for message in subscription:
        with tracer.start_as_current_span("handle", trace_context(message)):
            ...

OpenTelemetry's propagators decide what is written: `traceparent` and `tracestate` (W3C) unless the program has set
others. Brokers pass these headers on, to clients of MQTT and AMQP, too, which read them with their own libraries.
"""

from typing import TYPE_CHECKING

from .frames import Headers, Scalar
from .message import Message

if TYPE_CHECKING:
    from opentelemetry.context import Context


def trace_headers(headers: Headers | None = None) -> dict[str, Scalar | list[Scalar]]:
    """These headers, and those of the current trace context; nothing is added outside a span. Raises ImportError."""
    from opentelemetry.propagate import inject

    found: dict[str, Scalar | list[Scalar]] = dict(headers or {})
    inject(found)
    return found


def trace_context(message: Message) -> "Context":
    """The trace context that a message came with; an empty one if it has none. Raises ImportError."""
    from opentelemetry.context import Context
    from opentelemetry.propagate import extract

    texts = {name: value for name, value in message.headers.items() if isinstance(value, str)}
    return extract(texts, Context())
