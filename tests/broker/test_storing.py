"""The store as a part of a real broker: low space, metrics, and what /readyz says of it."""

import json
import signal
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from fanlight_bench.launch import Broker

Start = Callable[..., Any]


def get(broker: Broker, path: str) -> tuple[int, str]:
    """Status and body of a GET."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(broker.http_url + path, timeout=20) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def metrics(broker: Broker) -> dict[str, Any]:
    families = text_string_to_metric_families(get(broker, "/metrics")[1])
    return {family.name: family for family in families if family.name.startswith("fanlight_store")}


def test_a_store_with_little_room_says_so_and_is_well_again_with_a_lower_mark(
    start_broker: Start, tmp_path: Path
) -> None:
    config = tmp_path / "f.toml"
    config.write_text("data_free_bytes_min = '1024TiB'\n")
    broker = start_broker(data=tmp_path / "data", config=config)
    broker.may_complain = True  # it logs an error
    broker.wait_for_line("store_unwell", 30)
    assert "data_free_bytes_min is 1,125,899,906,842,624" in "".join(broker.lines)
    assert json.loads(get(broker, "/readyz")[1])["unwell"] == ["store"]
    assert metrics(broker)["fanlight_store_refusing"].samples[0].value == 1
    config.write_text("data_free_bytes_min = 0\n")
    broker.process.send_signal(signal.SIGHUP)
    broker.wait_for_line("store_well", 30)
    assert metrics(broker)["fanlight_store_refusing"].samples[0].value == 0
    assert json.loads(get(broker, "/readyz")[1])["unwell"] == []
    assert len([line for line in broker.lines if "store_unwell" in line]) == 1


def test_a_broker_without_a_store_says_that_nothing_survives(start_broker: Start) -> None:
    broker = start_broker()
    broker.wait_for_line("in_memory_only")
    assert json.loads(get(broker, "/readyz")[1])["durability"] == "in memory only"


def test_metrics_of_the_store_are_there_with_conforming_histograms(start_broker: Start, tmp_path: Path) -> None:
    found = metrics(start_broker(data=tmp_path / "data"))
    for name in ("bytes", "segments", "spare_files", "buffer_bytes", "backlog_messages", "free_bytes", "refusing"):
        assert found[f"fanlight_store_{name}"].type == "gauge", name
    for name in ("messages", "messages_unreadable", "groups", "bytes_written"):
        assert found[f"fanlight_store_{name}"].type == "counter", name
    for name in ("sync_seconds", "group_entries", "group_bytes"):
        family = found[f"fanlight_store_{name}"]
        assert family.type == "histogram"
        counts = [sample.value for sample in family.samples if sample.name.endswith("_bucket")]
        assert counts == sorted(counts)
        (count,) = (sample.value for sample in family.samples if sample.name.endswith("_count"))
        assert counts[-1] == count
