"""How far each query is behind its archive, in the log: session.streams.addListener(LagListener())."""

import logging
from typing import Final

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from fanlight_spark.lag import lags

log: Final = logging.getLogger(__name__)


class LagListener(StreamingQueryListener):
    """Says in the log how far each query is behind, after each of its batches."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        for lag in lags(progress):
            size = "" if lag.bytes is None else f", {lag.bytes / 1e6:,.1f} MB"
            log.log(
                logging.WARNING if lag.overtaken_soon else logging.INFO,
                "%s: %s messages/s; %s offsets%s behind%s",
                progress.name or progress.id, f"{progress.processedRowsPerSecond:,.0f}", f"{lag.offsets:,}", size,
                ": retention will soon overtake it" if lag.overtaken_soon else "",
            )  # fmt: skip

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Its first batch says more."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """It has read what there is."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Spark says why."""
