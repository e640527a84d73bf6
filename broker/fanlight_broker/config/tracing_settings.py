"""The settings of tracing: docs/tracing.md."""

from dataclasses import dataclass
from typing import Annotated

from fanlight_broker.config.groups import TRACING
from fanlight_broker.core.setting import Ge, Le, NeedsRestart, Reason, Unit


@dataclass(frozen=True, init=False, repr=False, eq=False)
class TracingSettings:
    trace_endpoint: Annotated[
        str | None, TRACING, NeedsRestart(), Unit("URL"),
        Reason(
            "where spans are sent, by OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces; without it nothing is "
            "traced. Needs the extra [otel]"
        ),
    ] = None
    trace_ratio: Annotated[
        float, TRACING, Ge(0), Le(1), Unit("of 1"),
        Reason("share of the messages without a trace context that are traced, chosen by chance"),
    ] = 0.001
    trace_parents: Annotated[
        bool, TRACING,
        Reason(
            "whether a message with a trace context (traceparent) is traced if its publisher's trace is sampled, as a "
            "part of that; without it trace_ratio decides on all messages"
        ),
    ] = True
    trace_messages_per_second_max: Annotated[
        int, TRACING, Ge(1), Le(100_000), Unit("messages/s"),
        Reason(
            "messages traced in a second, some 0.2 ms of processor time each; further ones are delivered without, and "
            "counted: any publisher may set a trace context"
        ),
    ] = 100
    trace_deliveries_max: Annotated[
        int, TRACING, Ge(0), Le(1_000), Unit("spans"),
        Reason("deliveries of one message that get a span; the span of the publish has the number of all"),
    ] = 16
    trace_spans_max: Annotated[
        int, TRACING, NeedsRestart(), Ge(16), Le(1_000_000), Unit("spans"),
        Reason("spans that wait to be sent, 2 KiB or so each; further ones are dropped, and counted"),
    ] = 4_096
    trace_service: Annotated[
        str, TRACING, NeedsRestart(), Unit("name"), Reason("the broker's service.name in its spans"),
    ] = "fanlight"
