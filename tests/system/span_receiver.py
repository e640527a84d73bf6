"""A receiver of spans: OTLP over HTTP, decoded by the protocol's own library."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Event, Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class Received:
    name: str
    trace: str
    id: str
    parent: str
    began: int
    ended: int
    attributes: dict[str, Any]
    error: str
    state: str


class SpanReceiver(ThreadingHTTPServer):
    """open: while it is not set, requests are taken and not answered."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.open = Event()
        self.open.set()
        self.asked = Event()
        self.services: set[str] = set()
        self._spans: list[Received] = []
        self._changed = Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/traces"

    def take(self, request: ExportTraceServiceRequest) -> None:
        with self._changed:
            for resource in request.resource_spans:
                self.services.update(
                    each.value.string_value for each in resource.resource.attributes if each.key == "service.name"
                )
                self._spans.extend(_received(span) for scope in resource.scope_spans for span in scope.spans)
            self._changed.notify_all()

    def spans(self, count: int, **wanted: object) -> list[Received]:
        """The first so many spans with these fields, when they have come."""
        with self._changed:
            def found() -> list[Received]:
                return [
                    span for span in self._spans if all(getattr(span, name) == value for name, value in wanted.items())
                ]

            assert self._changed.wait_for(lambda: len(found()) >= count, LIMIT_SECONDS), self._spans
            return found()


class Handler(BaseHTTPRequestHandler):
    server: SpanReceiver

    def do_POST(self) -> None:
        octets = self.rfile.read(int(self.headers["content-length"]))
        if self.headers["content-encoding"] == "gzip":
            octets = gzip.decompress(octets)
        request = ExportTraceServiceRequest()
        request.ParseFromString(octets)
        self.server.asked.set()
        if not self.server.open.wait(LIMIT_SECONDS):
            return
        self.server.take(request)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing on the standard error."""


def _received(span: Any) -> Received:
    attributes = {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}
    return Received(
        span.name, span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(), span.start_time_unix_nano,
        span.end_time_unix_nano, attributes, span.status.message, span.trace_state,
    )


@contextmanager
def receiving() -> Iterator[SpanReceiver]:
    server = SpanReceiver()
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.open.set()
        server.shutdown()
        thread.join()
        server.server_close()
