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
