"""Tracing as a part. OpenTelemetry is imported here, and only where the settings name an endpoint."""

import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fanlight_broker import __version__
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.config import Settings
from fanlight_broker.core_part import Core
from fanlight_broker.parts import Apply, Part, PartError
from fanlight_broker.wire.sampler import Sampler

if TYPE_CHECKING:
    from fanlight_broker.tracing.delivery_watch import DeliveryWatch
    from fanlight_broker.tracing.message_tracing import MessageTracing
    from fanlight_broker.tracing.span_queue import SpanQueue

ADVICE: Final = (
    "trace_endpoint needs OpenTelemetry, which is not installed: `pip install './broker[otel]'` in a checkout, "
    "`docker build --build-arg EXTRA=otel` for an image"
)
COUNTERS: Final = {
    "traced_messages": "Messages that were traced",
    "traced_messages_limited": "Messages that were not traced because of trace_messages_per_second_max",
    "trace_spans_sent": "Spans that the receiver has taken",
    "trace_spans_dropped": "Spans dropped because trace_spans_max of them waited",
    "trace_spans_lost": "Spans in requests that the receiver has not taken",
}
GAUGES: Final = {
    "trace_spans_waiting": "Spans that wait to be sent",
    "trace_deliveries_open": "Deliveries of traced messages that are not written yet",
}
EXPORT_SECONDS: Final = 5.0  # for one request, its repetitions included


class Tracing(Part):
    name = "tracing"

    def __init__(self, settings: Settings, core: Core) -> None:
        self._settings, self._broker = settings, core.broker
        self._tracing: MessageTracing | None = None
        self._queue: SpanQueue | None = None
        self._watch: DeliveryWatch | None = None

    async def open(self) -> None:
        settings, endpoint = self._settings, self._settings.trace_endpoint
        if endpoint is None:
            return
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.sampling import ALWAYS_ON
        except ModuleNotFoundError as error:
            raise PartError(ADVICE) from error
        from fanlight_broker.tracing.delivery_watch import DeliveryWatch
        from fanlight_broker.tracing.message_tracing import MessageTracing
        from fanlight_broker.tracing.span_queue import SpanQueue

        self._queue = SpanQueue(OTLPSpanExporter(endpoint, timeout=EXPORT_SECONDS), settings.trace_spans_max)
        provider = TracerProvider(  # the sampler here is ours: whoever asks for a span gets one
            ALWAYS_ON, Resource.create({"service.name": settings.trace_service, "service.version": __version__}),
            shutdown_on_exit=False,
        )
        provider.add_span_processor(self._queue)
        self._watch = DeliveryWatch(asyncio.get_running_loop())
        self._tracing = MessageTracing(
            sampler_of(settings), provider.get_tracer("fanlight_broker", __version__), self._watch,
            settings.trace_deliveries_max,
        )
        self._broker.trace_with(self._tracing)

    async def start(self) -> None:
        if self._queue is not None:
            self._queue.start()

    async def stop(self) -> None:
        if self._queue is not None and self._watch is not None:
            self._watch.close()
            await asyncio.get_running_loop().run_in_executor(None, self._queue.close)

    def reload(self, settings: Settings) -> Apply:
        def apply() -> None:
            if self._tracing is not None:
                self._tracing.deliveries_max = settings.trace_deliveries_max
                self._tracing.sampler.use(
                    settings.trace_ratio, settings.trace_parents, settings.trace_messages_per_second_max
                )

        return apply

    def metrics(self) -> Sequence[MetricSource]:
        if self._tracing is None:
            return []
        return [MetricSource({**COUNTERS, **GAUGES}, self._counters, self._gauges)]

    def _counters(self) -> dict[str, int]:
        tracing, spans = self._tracing, self._queue
        assert tracing is not None
        assert spans is not None
        return {
            "traced_messages": tracing.sampler.chosen, "traced_messages_limited": tracing.sampler.limited,
            "trace_spans_sent": spans.exported, "trace_spans_dropped": spans.dropped, "trace_spans_lost": spans.lost,
        }

    def _gauges(self) -> dict[str, float]:
        return {
            "trace_spans_waiting": float(self._queue.waiting) if self._queue is not None else 0.0,
            "trace_deliveries_open": float(len(self._watch)) if self._watch is not None else 0.0,
        }


def sampler_of(settings: Settings) -> Sampler:
    return Sampler(
        settings.trace_ratio, parents=settings.trace_parents, per_second=settings.trace_messages_per_second_max,
        seed=int.from_bytes(os.urandom(8), "big"),
    )
