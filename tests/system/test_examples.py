"""The SDK's examples, each run as its own text says, against a real broker: they end by themselves and show this."""

import subprocess
import sys

import pytest

from tests.conftest import TestBroker
from tests.require import ROOT

EXAMPLES = ROOT / "clients" / "python" / "examples"

SHOWN = {
    "publish_subscribe.py": "nasdaq 189.95\nxetra 174.20\n",
    "request_reply.py": "nobody is subscribed to 'shout'\nHELLO\n",
    "queue_group.py": "30 jobs done, each once\n",
    "work_queue.py": "29 orders done\norder 13 failed: deliveries\n",
    "json_messages.py": (
        "readings.cellar application/json {'celsius': 11.5}\n"
        "readings.attic application/msgpack {'celsius': 27.25}\n"
        "readings.raw None b'\\x00\\x01'\n"
    ),
    "sync_client.py": "line 0\nline 1\nline 2\nUTC\n",
    "mqtt_patterns.py": (
        "stock/+/# mqtt ('stock', 'nyse', 'BRK.B')\n"
        "stock/+/# amqp ('stock', 'nyse', 'BRK', 'B')\n"
        "stock.*.* mqtt ('stock', 'nyse', 'BRK.B')\n"
    ),
}


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_shows_what_it_promises(module_broker: TestBroker, name: str) -> None:
    # -W error: an example that leaves a warning behind is no example.
    run = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), module_broker.url],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.endswith(SHOWN[name])


def test_the_program_that_mypy_checks_runs(module_broker: TestBroker) -> None:
    program = EXAMPLES.parent / "tests" / "typed_program.py"
    run = subprocess.run([sys.executable, "-W", "error", str(program), module_broker.url], capture_output=True,
                         text=True, timeout=60)  # fmt: skip
    assert (run.stdout.splitlines()[-1:], run.stderr) == (["{'AAPL': 189.95} STOCK/NASDAQ/AAPL"], "")
