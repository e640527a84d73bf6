"""What one does in Spark without us, to find which filters match which topics. matching.py says what each is.

All give (topic, subscription), the number of the filter. Filters and topics are in MQTT's spelling.
"""

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from pyspark.sql import functions as F

_MATCHERS: dict[int, Any] = {}  # in a Python worker: paho's index of the filters in use, by how many they are

#: Every filter that would match a topic: its words, each as it is or as `+`, and `#` behind any number of them.
CANDIDATES = """
    aggregate(
        split(topic, '/'),
        named_struct('open', array(''), 'closed', array('#')),
        (found, word) -> named_struct(
            'open', flatten(transform(found.open, text -> array(text || word || '/', text || '+/'))),
            'closed', found.closed
                || flatten(transform(found.open, text -> array(text || word || '/#', text || '+/#')))
        ),
        found -> found.closed || transform(found.open, text -> left(text, length(text) - 1))
    )
"""


def expression(filter: str) -> str:
    """A filter of MQTT as a regular expression for all of a topic."""
    words = filter.split("/")
    below = words[-1] == "#"
    kept = words[:-1] if below else words
    text = "/".join("[^/]*" if word == "+" else re.escape(word) for word in kept)
    return f"^{text}{'(/.*)?' if below else ''}$"


def by_rlike(session: Any, topics: Any, filters: Sequence[str]) -> Any:
    rows = [(expression(text), number) for number, text in enumerate(filters)]
    patterns = session.createDataFrame(rows, "pattern STRING, subscription BIGINT")
    return topics.join(F.broadcast(patterns), F.expr("topic RLIKE pattern")).select("topic", "subscription")


def by_join(topics: Any, filters: Any) -> Any:
    """By equality of the candidates of a topic with the filters, a DataFrame (filter, subscription)."""
    wanted = topics.select("topic", F.explode(F.expr(CANDIDATES)).alias("filter"))
    return wanted.join(filters, "filter").select("topic", "subscription")


def filter_table(session: Any, folder: Any, filters: Sequence[str]) -> Any:
    """The filters as a DataFrame that is in memory already."""
    from pyarrow import parquet  # type: ignore[import-untyped, unused-ignore]

    from fanlight_archive.arrow import pa

    folder.mkdir()
    numbers = pa.array(range(len(filters)), pa.int64())
    parquet.write_table(pa.table({"filter": list(filters), "subscription": numbers}), folder / "filters.parquet")
    table = session.read.parquet(str(folder)).cache()
    table.count()
    return table


def shared_filters(session: Any, filters: Sequence[str]) -> Any:
    """For the workers, which build paho's index of them once each."""
    return session.sparkContext.broadcast(list(filters))


def by_paho(topics: Any, shared: Any) -> Any:
    """A UDF that is called for each row, and explode of what it gives."""

    def match(topic: str) -> list[int]:
        # By the module's name: what a function refers to is sent with it, and would be new in each task.
        found: Any = import_module("fanlight_bench.pipeline.baselines")
        return list(found.paho_index(shared).iter_match(topic))

    # Not deterministic: else Spark asks it twice, to leave out topics that nothing matches.
    asked = F.udf(match, "array<bigint>", useArrow=False).asNondeterministic()
    return topics.select("topic", F.explode(asked("topic")).alias("subscription"))


def by_pandas(topics: Any, shared: Any) -> Any:
    """mapInPandas: paho's matcher is asked once for each topic of a batch, and numpy repeats what it says."""

    def match(frames: Any) -> Any:
        import numpy as np

        pandas: Any = import_module("pandas")
        found: Any = import_module("fanlight_bench.pipeline.baselines")
        matcher = found.paho_index(shared)
        for frame in frames:
            codes, names = pandas.factorize(frame["topic"])
            lists = [np.fromiter(matcher.iter_match(name), np.int64) for name in names]
            counts = np.array([len(one) for one in lists], np.int64)[codes]
            numbers = np.concatenate([lists[code] for code in codes]) if len(codes) else np.empty(0, np.int64)
            yield pandas.DataFrame({"topic": frame["topic"].to_numpy().repeat(counts), "subscription": numbers})

    return topics.select("topic").mapInPandas(match, "topic STRING, subscription BIGINT")


def paho_index(shared: Any) -> Any:
    """The MQTTMatcher of the filters in a broadcast, built once in a worker."""
    size = len(shared.value)
    if size not in _MATCHERS:
        matcher: Any = import_module("paho.mqtt.matcher").MQTTMatcher()
        for number, filter in enumerate(shared.value):
            matcher[filter] = number
        _MATCHERS.clear()
        _MATCHERS[size] = matcher
    return _MATCHERS[size]
