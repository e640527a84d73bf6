"""What becomes of a message that is traced: spans for its publish, its store and its deliveries.

    publish   from when it is looked at until it is acknowledged, or would be
      store     from its fan-out until the log, or the archive, is synced so far
      deliver   one for each subscription, up to a bound: until the last byte is written to the socket

The publish is a child of the publisher's span, if the message names one. The message itself goes on unchanged: its
consumers are children of the publisher's span, too, and need no broker to be so.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import time_ns
from typing import Final, NamedTuple

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from fanlight_broker.core.publication import Publication
from fanlight_broker.core.publishing import HELD, Accepted, Outcome, Publishing, Receipt, Refused, Sender
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.topics import SYNTAXES, masked
from fanlight_broker.tracing.delivery_watch import DeliveryWatch
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.sampler import Sampler
from fanlight_broker.wire.target import Members, Target

PROPAGATOR: Final = TraceContextTextMapPropagator()
SYSTEM: Final = "fanlight"
TOPIC_CHARACTERS: Final = 1_024  # of a topic in a span

Attributes = dict[str, AttributeValue]


class Delivery(NamedTuple):
    """To one subscription, or to a queue."""

    attributes: Attributes
    target: Target | None


@dataclass(slots=True, eq=False)
class MessageTrace:
    """Of one message, while it is accepted. Times are in nanoseconds since 1970."""

    deliveries_max: int
    began: int = field(default_factory=time_ns)
    forwarded: int = 0  # when its fan-out began; 0: it was not fanned out
    fanned_out: int = 0
    recorded: bool = False
    subscriptions: int = 0
    deliveries: list[Delivery] = field(default_factory=list)

    def forward(self, sender: Sender, route: Route) -> bool:
        began = time_ns()
        if not sender.forward(route):
            return False
        self.fanned_out = time_ns()
        self.forwarded = self.forwarded or began
        self.recorded = self.recorded or route.tap is not None
        self.subscriptions += sender.routed
        for target in route.targets[: self.deliveries_max - len(self.deliveries)]:
            self.deliveries.append(Delivery(attributes_of(target), target))
        for group in route.groups[: self.deliveries_max - len(self.deliveries)]:
            self.deliveries.append(Delivery(attributes_of_group(group), None))
        return True


def attributes_of(target: Target) -> Attributes:
    subscriber = target.owner
    found: Attributes = {"messaging.destination.subscription.name": text(target.filter, target.syntax_number)}
    return {**found, **attributes_of_client(subscriber)} if subscriber is not None else found


def attributes_of_client(client: Subscriber) -> Attributes:
    name, _, version = client.protocol.partition(" ")
    found: Attributes = {"messaging.client.id": client.name, "network.protocol.name": name}
    if version:
        found["network.protocol.version"] = version
    return found


def attributes_of_group(group: Members) -> Attributes:
    return {"messaging.consumer.group.name": group.name}


def text(octets: bytes, syntax: int) -> str:
    """A topic or filter as others may see it: without the random word of an inbox."""
    return masked(octets, SYNTAXES[syntax]).decode("utf-8", "replace")[:TOPIC_CHARACTERS]


class MessageTracing:
    """tracer: the SDK's, which records every span that it is asked for"""

    def __init__(self, sampler: Sampler, tracer: Tracer, watch: DeliveryWatch, deliveries_max: int) -> None:
        self.sampler = sampler
        self.deliveries_max = deliveries_max
        self._tracer, self._watch = tracer, watch

    def accept(
        self, publishing: Publishing, publication: Publication, sender: Sender, now: float, receipt: Receipt | None
    ) -> Outcome:
        message, before = publication.message, publishing.trace
        publishing.trace = None  # another message may be published inside
        try:
            if publication.publisher is None or not self.sampler.chooses(message, now):
                return publishing.accept_untraced(publication, sender, now, receipt)
            parent = self.sampler.parent(message)
            attributes: Attributes = {  # here: forwarding invalidates what the message points at
                "messaging.destination.name": text(message.topic, message.syntax),
                "messaging.message.body.size": len(message.payload),
                **attributes_of_client(publication.publisher),
            }
            state = message.format.header_text(message, b"tracestate") if parent is not None else None
            since = publishing.acknowledgements.position.appended
            trace = publishing.trace = MessageTrace(self.deliveries_max)
            outcome = publishing.accept_untraced(publication, sender, now, receipt)
        finally:
            publishing.trace = before
        if outcome is not HELD:  # else it comes again
            self.sampler.take(by_ratio=parent is None)
            span = self._span("publish", _context(parent, state), SpanKind.SERVER, attributes, trace.began)
            self._follow(span, trace, outcome, publishing, since)
        return outcome

    def _follow(self, span: Span, trace: MessageTrace, outcome: Outcome, publishing: Publishing, since: int) -> None:
        acknowledgements, context = publishing.acknowledgements, set_span_in_context(span)
        if isinstance(outcome, Refused):
            span.set_attribute("error.type", type(outcome.error).__name__)
            span.set_status(Status(StatusCode.ERROR, str(outcome.error)))
        elif isinstance(outcome, Accepted):
            span.set_attribute("fanlight.subscriptions", outcome.routed)
            span.set_attribute("fanlight.delayed", outcome.delayed)
        for attributes, target in trace.deliveries:
            delivery = self._span("deliver", context, SpanKind.PRODUCER, attributes, trace.forwarded)
            self._watch.add(delivery, target, trace.fanned_out)
        if acknowledgements.position.appended == since and not trace.recorded:
            span.end()
            return
        stored = self._span("store", context, SpanKind.INTERNAL, {}, trace.forwarded or trace.began)
        acknowledgements.commit(_ending(stored, span), recorded=trace.recorded, since=since)

    def _span(self, name: str, context: Context | None, kind: SpanKind, attributes: Attributes, began: int) -> Span:
        return self._tracer.start_span(
            name, context, kind, {"messaging.system": SYSTEM, "messaging.operation.name": name, **attributes},
            start_time=began,
        )


def _context(parent: str | None, state: str | None) -> Context:
    carrier = {} if parent is None else {"traceparent": parent}
    if state is not None:
        carrier["tracestate"] = state
    return PROPAGATOR.extract(carrier, Context())


def _ending(*spans: Span) -> Callable[[], None]:
    def end() -> None:
        for span in spans:
            span.end()

    return end
