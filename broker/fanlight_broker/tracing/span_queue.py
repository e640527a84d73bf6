"""Finished spans on their way out: a bounded queue, and the thread that sends what is in it.

    loop: span.end() --on_end--> queue of `most` spans --thread--> exporter.export(up to BATCH)
                          '-> full: dropped, and counted

The SDK's own batch processor drops without a count, so this one takes its place. The loop never waits here.
"""

import logging
import queue
from collections.abc import Sequence
from threading import Thread
from typing import Final, Protocol

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExportResult

from fanlight_broker import logs

log: Final = logs.get("tracing")

BATCH: Final = 128  # spans in a request: some ms of encoding, beside the loop
CLOSE_SECONDS: Final = 2.0
LIBRARY: Final = "opentelemetry.exporter"  # the logger that says why an export failed


class Exporter(Protocol):
    """The SDK's SpanExporter, as far as it is used."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult: ...

    def shutdown(self) -> None: ...


class LastReason(logging.Handler):
    """Keeps the last thing that the exporter has logged, which its result does not say."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()[:500]


class SpanQueue(SpanProcessor):
    """most: spans that wait"""

    def __init__(self, exporter: Exporter, most: int) -> None:
        self.exported = self.dropped = self.lost = 0  # lost: in requests that failed
        self._exporter = exporter
        self._queue: queue.Queue[ReadableSpan | None] = queue.Queue(most)
        self._failing = False
        self._reason = LastReason()
        library = logging.getLogger(LIBRARY)
        library.addHandler(self._reason)
        library.propagate = False
        self._thread = Thread(target=self._run, name="fanlight-spans", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def waiting(self) -> int:
        return self._queue.qsize()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Only what has ended is of interest."""

    def on_end(self, span: ReadableSpan) -> None:
        try:
            self._queue.put_nowait(span)
        except queue.Full:
            self.dropped += 1

    def close(self) -> None:
        """Send what waits, for CLOSE_SECONDS at most. Blocks: not for the loop."""
        try:
            self._queue.put(None, timeout=CLOSE_SECONDS)
        except queue.Full:
            self._exporter.shutdown()  # which ends the retries that the thread is in
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS)
        self._exporter.shutdown()
        logging.getLogger(LIBRARY).removeHandler(self._reason)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """The thread sends at once whatever it finds."""
        return self._queue.empty()

    def _run(self) -> None:
        last = False
        while not last:
            batch = [span] if (span := self._queue.get()) is not None else []
            last = span is None
            while not last and len(batch) < BATCH and not self._queue.empty():
                more = self._queue.get()
                if more is None:
                    last = True
                else:
                    batch.append(more)
            if batch:
                self._send(batch)

    def _send(self, batch: list[ReadableSpan]) -> None:
        self._reason.text = ""
        try:
            sent = self._exporter.export(batch) is SpanExportResult.SUCCESS
        except Exception as error:  # the library raises only what is a fault of it
            sent, self._reason.text = False, repr(error)
        if sent:
            self.exported += len(batch)
        else:
            self.lost += len(batch)
        if sent is self._failing:
            self._failing = not sent
            if sent:
                log.info("tracing_works")
            else:
                log.warning("tracing_failed", reason=self._reason.text, advice="spans are lost until it works again")
