"""The pipeline: what was archived, as Spark's DataFrames. One code for a laptop and for a cluster.

    session    a SparkSession with what the rest needs      source     the data source `fanlight`
    positions  where in an archive; dividing the work       pushdown   what Spark says of rows that it wants
    topics     which topics filters match, in Arrow         matching   subscriptions joined with messages
    shared     an index for the workers, mapped by all
    snapshot   a broker's subscriptions as a file           coverage   which of them others make redundant
    shares     who gets what part of a message              deliveries the same of all that passed
    sink       the data source `fanlight`, writing          outgoing   what a row says as a message
    publishing a window of messages without receipt         remote     an archive as its broker replays it
    broker     a connection to one, for both                options    of source and sink
    admission  how much a batch of a stream reads       lag        how far a stream is behind
    functions  filters and selectors in SQL                 askers     who published, as rules may ask
    tables     payloads as typed columns                    decoding   the same without Spark: formats, types, times
    catalog    CREATE TABLE ... USING fanlight              lakehouse an archive as a table, without Spark
    bars       ticks as bars                                histories  what is not as it was
    headways   vehicles that pass the same place            ways       when they do, by their positions
    kafka      a bridge to and from Kafka                   message    what is published, and its headers
    pack       what workers need, as one archive
    judging    what two files of permissions decide         decisions  the same of all that was archived

It imports the archive's format, the matcher, the permissions and, for a running broker, the SDK; nothing of the broker
itself. This package alone asks for no Spark: that is the extra `[spark]`. docs/pipeline.md is the page for users.
"""

from typing import Any

__all__ = ["decode", "register"]


def decode(messages: Any, decoders: Any, table: str | None = None) -> Any:
    """Messages as a table, by a file of decoders: tables.py."""
    from fanlight_spark.tables import decode as decoded  # here: it needs Spark

    return decoded(messages, decoders, table)


def register(session: Any) -> Any:
    """Make the source `fanlight` and the functions of SQL known to a session; the session."""
    from fanlight_spark.session import register as registered  # here: it needs Spark

    return registered(session)
