"""The micro-benches run, and print what they promise."""

import json
import subprocess
import sys


def test_the_bench_of_a_publish_prints_every_way_it_can_take() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "bench.micro.publish"], capture_output=True, text=True, timeout=120, check=True
    )
    result = json.loads(run.stdout)
    assert set(result) == {"1 subscribers", "100 subscribers"}
    for ways in result.values():
        assert set(ways) == {"known", "receipt", "plain", "cold"}
        assert all(way["ns_per_publish"] > 0 for way in ways.values())


def test_the_process_grows_by_what_an_index_says_it_holds_and_all_of_it_comes_back() -> None:
    """In a process of its own, by /proc. Two rounds, so that what the first one left would be seen."""
    run = subprocess.run(
        [sys.executable, "-m", "bench.micro.memory", "W3:100000"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    rounds = json.loads(run.stdout)["workloads"]["W3:100000"]["rounds"]
    assert len(rounds) == 2
    for line in rounds:
        assert line["nbytes_left"] == 0
        assert 100 < line["nbytes_per_filter"] < 160
        if line["resident_per_filter"] is not None:
            assert 0.8 < line["resident_per_filter"] / line["nbytes_per_filter"] < 1.25
            assert line["resident_left"] < 2_000_000  # of the 13 million that were held


def test_the_bench_of_the_lanes_has_every_protocol_and_qos_beside_the_native_one() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "bench.micro.lanes"], capture_output=True, text=True, timeout=120, check=True
    )
    result = json.loads(run.stdout)["lanes"]
    assert set(result) == {"1 subscribers", "10 subscribers"}
    for ways in result.values():
        assert set(ways) >= {"native", "3.1.1", "3.1.1 QoS 1", "5.0", "5.0 QoS 1", "5.0 alias", "5.0 aliases"}
        assert all(way["ns_per_publish"] > 0 for way in ways.values())
        # What arrives is as long as it was sent: a head of two octets, the topic, the payload.
        assert ways["3.1.1"]["bytes_per_delivery"] == 2 + 2 + 24 + 64
        assert ways["5.0 alias"]["bytes_per_delivery"] == ways["5.0"]["bytes_per_delivery"] == 93
