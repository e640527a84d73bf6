"""Who gets how much of what passed: a snapshot of subscriptions over the messages of an archive.

    volumes(messages)                 a row for each topic: how many messages, how many bytes
    deliveries(volumes, snapshot)     a row for each topic and each subscription that gets (a part of) it; one without
                                      a subscription for what nobody gets

Copies are counted as the broker sends them: shares.py.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from fanlight_archive.arrow import pa
from fanlight_spark import workers
from fanlight_spark.matching import ROWS_AT_ONCE
from fanlight_spark.shares import shares, terms_of
from fanlight_spark.snapshot import Snapshot

DELIVERIES = StructType(
    [
        StructField("topic", StringType()),
        StructField("syntax", StringType()),
        StructField("subscription", LongType()),  # its place in the snapshot
        StructField("messages", DoubleType()),
        StructField("bytes", DoubleType()),
    ]
)


def columns_for(*snapshots: Snapshot) -> list[str]:
    """The columns that are used: the publisher only where a snapshot needs it, because a broker does not send it."""
    return ["topic", "syntax", "value", *(["client"] if any(each.no_echo for each in snapshots) else [])]


def volumes(messages: DataFrame, *snapshots: Snapshot) -> DataFrame:
    """(topic, syntax, publisher, messages, bytes) of messages with the columns `columns_for`."""
    publisher = F.col("client") if any(each.no_echo for each in snapshots) else F.lit(None).cast("string")
    return messages.groupBy("topic", "syntax", publisher.alias("publisher")).agg(
        F.count("*").alias("messages"), F.sum(F.octet_length("value")).alias("bytes")
    )


def deliveries(volumes: DataFrame, snapshot: Snapshot) -> DataFrame:
    """What each subscription gets of each topic, as in DELIVERIES; and with subscription null what nobody gets."""
    shared = volumes.sparkSession.sparkContext.broadcast(terms_of(snapshot))

    def share(batches: Iterator[Any]) -> Iterator[Any]:
        workers.settle()
        for batch in batches:
            for at in range(0, batch.num_rows, ROWS_AT_ONCE):
                part = batch.slice(at, ROWS_AT_ONCE)
                topics, syntaxes, publishers, messages, octets = part.columns
                rows, ids, weights = shares(shared.value, topics, syntaxes, publishers)
                unheard = np.setdiff1d(np.arange(part.num_rows), rows)
                nobody = pa.nulls(len(unheard), pa.int64())
                rows, weights = np.concatenate([rows, unheard]), np.concatenate([weights, np.ones(len(unheard))])
                taken = pa.array(rows)
                yield pa.RecordBatch.from_arrays(
                    [
                        topics.take(taken),
                        syntaxes.take(taken),
                        pa.concat_arrays([pa.array(ids), nobody]),
                        pa.array(messages.to_numpy(zero_copy_only=False)[rows] * weights),
                        pa.array(octets.to_numpy(zero_copy_only=False)[rows] * weights),
                    ],
                    names=DELIVERIES.names,
                )

    chosen = volumes.select("topic", "syntax", "publisher", "messages", "bytes")
    return chosen.mapInArrow(share, DELIVERIES)


def frame_of(spark: SparkSession, snapshot: Snapshot) -> DataFrame:
    """A snapshot's subscriptions, each with its place: (subscription, client, user, filter, syntax, group, qos)."""
    given = snapshot.subscriptions
    columns = {
        "subscription": pa.array(range(len(given)), pa.int64()),
        "client": pa.array([utf8_text(each.client) for each in given], pa.string()),
        "user": pa.array([utf8_text(each.user) for each in given], pa.string()),
        "filter": pa.array([each.shown for each in given], pa.string()),
        "syntax": pa.array([each.syntax for each in given], pa.string()),
        "group": pa.array([each.group if each.group is None else utf8_text(each.group) for each in given], pa.string()),
        "qos": pa.array([each.qos for each in given], pa.int32()),
    }
    return spark.createDataFrame(pa.table(columns))


def utf8_text(given: str) -> str:
    """For Spark, whose strings are UTF-8."""
    return given.encode("utf-8", "replace").decode()
