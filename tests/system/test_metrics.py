"""/metrics of a running broker, by the rules of promtool, and what its labels count."""

import asyncio
import re
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from fanlight_bench.launch import Broker
from tests.conftest import StartBroker
from tests.interop.mosquitto import Sub, pub
from tests.system.test_credentials import reload
from tests.system.views import ask, eventually, stats
from tests.system.wire import Peer, publish

SCALED = re.compile(r"_(ms|us|ns|milliseconds|microseconds|minutes|hours|days|kb|kib|mb|mib|kilobytes|percent)(_|$)")
KINDS = ("counter", "gauge", "histogram", "summary")


async def families_of(broker: Broker, **credentials: str) -> dict[str, Metric]:
    status, text = await asyncio.to_thread(ask, f"{broker.http_url}/metrics", **credentials)
    assert status == 200
    return {family.name: family for family in text_string_to_metric_families(text)}


def values(family: Metric, *labels: str) -> dict[tuple[str, ...], float]:
    return {tuple(each.labels[name] for name in labels): each.value for each in family.samples}


async def test_every_family_keeps_the_rules_that_promtool_checks(start_broker: StartBroker) -> None:
    broker = start_broker()
    async with await Peer.connect(broker.port) as peer:
        await peer.settle()
        _, text = await asyncio.to_thread(ask, f"{broker.http_url}/metrics")
    names = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    assert len(names) == len(dict(names)) > 100
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
    for name, kind in names:
        assert re.fullmatch(r"(fanlight|process)_[a-z][a-z0-9_]*", name), name
        assert helps[name].strip(), name
        assert (kind == "counter") == name.endswith("_total"), name
        assert not SCALED.search(name), f"{name}: a unit that is not a base unit"
        assert not any(f"_{each}" in name for each in KINDS), f"{name}: its type in its name"
        assert not name.endswith(("_count", "_sum", "_bucket")), name
        bare = name.removesuffix("_total")
        for unit in ("bytes", "seconds"):
            # A unit stands at the end: before _total, or the last word (limit_idle_seconds).
            if f"_{unit}_" in f"{bare}_" and kind != "histogram":
                assert bare.endswith(f"_{unit}") or bare.startswith(("fanlight_bytes_", "fanlight_limit_")), name
    for family in text_string_to_metric_families(text):
        labels = {tuple(sorted(set(sample.labels) - {"le"})) for sample in family.samples}
        assert len(labels) <= 1, f"{family.name}: samples with different labels"


async def test_messages_and_bytes_are_counted_for_the_listener_they_came_by(start_broker: StartBroker) -> None:
    broker = start_broker()
    with Sub(broker.mqtt_port, "-t", "a") as sub:
        async with await Peer.connect(broker.port) as peer:
            await peer.subscribe(1, "a")
            await peer.send(*[publish("a", b"12345")] * 3)
            await peer.payloads(3)
            await asyncio.to_thread(pub, broker.mqtt_port, "-t", "a", "-m", "6", "-q", 1)
            await asyncio.to_thread(sub.messages, 4)
            await peer.payloads(1)
            await eventually(broker, lambda seen: seen["connections"] == 2)  # mosquitto_pub has gone
            found = await families_of(broker)
            shown = await stats(broker)
            by = ("protocol", "listener")
            native, mqtt, websocket = ("native", "native"), ("mqtt", "mqtt"), ("mqtt", "mqtt_websocket")
            idle = {websocket: 0, ("native", "native_websocket"): 0, ("amqp", "amqp"): 0}
            assert values(found["fanlight_connections"], *by) == {native: 1, mqtt: 1, **idle}
            assert values(found["fanlight_messages_in"], *by) == {native: 3, mqtt: 1, **idle}
            assert values(found["fanlight_messages_out"], *by) == {native: 4, mqtt: 4, **idle}
            for name in ("bytes_in", "bytes_out"):
                counted = values(found[f"fanlight_{name}"], *by)
                assert sum(counted.values()) == shown[name]
                assert counted[native] > 0 < counted[mqtt]
            accepted = values(found["fanlight_connections_accepted"], "protocol")
            assert accepted == {("native",): 1, ("mqtt",): 2, ("amqp",): 0}


async def test_what_is_lost_is_one_family_with_the_reason_as_its_label(start_broker: StartBroker) -> None:
    found = await families_of(start_broker())
    reasons = values(found["fanlight_messages_dropped"], "reason")
    assert {("newest",), ("oldest",), ("credit",), ("queue",), ("expired",), ("too_large",)} <= set(reasons)
    assert not [name for name in found if name.startswith("fanlight_dropped")]
    stages = values(found["fanlight_handshakes_failed"], "protocol", "stage")
    protocols = ("native", "mqtt", "amqp")
    assert set(stages) == {(each, stage) for each in protocols for stage in ("tls", "websocket", "protocol")}


async def test_there_are_histograms_of_recipients_and_of_the_loops_lag(start_broker: StartBroker) -> None:
    broker = start_broker()
    async with await Peer.connect(broker.port) as peer:
        for number in range(1, 13):
            await peer.subscribe(number, "twelve")
        await peer.subscribe(13, "one")
        await peer.send(*[publish("twelve")] * 8, *[publish("one")] * 2, publish("nobody"))
        await peer.payloads(98)
        await peer.settle()
        found = await families_of(broker)
    family = found["fanlight_message_recipients"]
    samples = {(each.name.rpartition("_")[2], each.labels.get("le")): each.value for each in family.samples}
    assert [samples["bucket", bound] for bound in ("0.0", "1.0", "10.0", "100.0", "+Inf")] == [1, 3, 3, 11, 11]
    assert (samples["count", None], samples["sum", None]) == (11, 98)
    assert found["fanlight_loop_lag_seconds"].type == "histogram"


async def test_limits_are_gauges_beside_what_they_bound(start_broker: StartBroker) -> None:
    found = await families_of(start_broker(connections_max=321, stored_bytes_max="5MiB"))
    assert values(found["fanlight_limit_connections"]) == {(): 321}
    assert values(found["fanlight_limit_stored_bytes"]) == {(): 5 * 1024 * 1024}
    assert "fanlight_stored_bytes" in found


async def test_the_archives_syncs_are_a_histogram(start_broker: StartBroker, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    broker = start_broker(archive=tmp_path / "archive", archive_durability="batch", archive_receipts=True)
    async with await Peer.connect(broker.port) as peer:
        await peer.publish("a", b"x")
        found = await families_of(broker)
    counts = [each.value for each in found["fanlight_archive_sync_seconds"].samples if each.name.endswith("_count")]
    assert counts[0] >= 1
    assert ("lost",) in values(found["fanlight_archive_messages_dropped"], "reason")


async def test_prometheus_scrapes_with_a_token_from_a_file_that_a_reload_reads_again(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    token, secret = tmp_path / "token", tmp_path / "secret"
    token.write_text("scrape-me\n")
    secret.write_text("sesame\n")
    broker = start_broker(
        metrics_token_file=token, environment={"FANLIGHT_PASSWORD_FILE": str(secret)},
    )
    async with await Peer.connect(broker.port, user="x", password="sesame") as peer:
        await peer.settle()
        assert ask(f"{broker.http_url}/readyz")[0] == 200
        assert ask(f"{broker.http_url}/metrics")[0] == 401
        assert ask(f"{broker.http_url}/metrics", bearer="scrape-me")[0] == 200
        assert ask(f"{broker.http_url}/stats", bearer="scrape-me")[0] == 401
        token.write_text("changed\n")
        secret.write_text("changed too\n")
        reload(broker)
        assert ask(f"{broker.http_url}/metrics", bearer="scrape-me")[0] == 401
        assert ask(f"{broker.http_url}/metrics", bearer="changed")[0] == 200
        assert (await peer.rest())[-1][1] == "authentication_failed"
    assert ask(f"{broker.http_url}/stats", user="x", password="changed too")[0] == 200
    assert not any("sesame" in line or "changed too" in line or "scrape-me" in line for line in broker.lines)
