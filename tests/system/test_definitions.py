"""RabbitMQ's file of definitions, into a broker and out of it, and into another one."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartBroker, TestBroker

EXPORT = Path(__file__).parents[1] / "data/rabbitmq/definitions.json"


def definitions(broker: TestBroker, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "fanlight.cli", "definitions", *words, "--http", broker.http_url]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def of(document: dict[str, Any], kind: str, *names: str) -> list[tuple[Any, ...]]:
    """The objects of a list by some of their fields, without an order."""
    return sorted(tuple(json.dumps(each.get(name)) for name in names) for each in document[kind])


QUEUE = ("name", "vhost", "durable", "auto_delete")
EXCHANGE = ("name", "vhost", "type", "durable", "auto_delete", "arguments")
BINDING = ("source", "vhost", "destination", "destination_type", "routing_key", "arguments")


@pytest.fixture(scope="module")
def broker(start_module_broker: StartBroker) -> TestBroker:
    return start_module_broker(amqp_vhosts="shop")


def test_a_file_that_rabbitmq_has_written(broker: TestBroker, tmp_path: Path) -> None:
    ours = tmp_path / "ours.json"
    dry = definitions(broker, "import", str(EXPORT), "--dry-run")
    assert "3 users: fanlightd user import" in dry.stdout
    assert "would make: vhost '/', queue 'q-bills'" in dry.stdout
    assert definitions(broker, "export", str(ours)).returncode == 0
    assert json.loads(ours.read_text())["queues"] == []  # nothing was changed
    done = definitions(broker, "import", str(EXPORT))
    assert "policies, exchanges, queues and bindings are declared" in done.stdout, done.stderr
    assert definitions(broker, "export", str(ours)).returncode == 0
    theirs, found = json.loads(EXPORT.read_text()), json.loads(ours.read_text())
    assert of(found, "exchanges", *EXCHANGE) == of(theirs, "exchanges", *EXCHANGE)
    assert set(of(found, "queues", *QUEUE)) <= set(of(theirs, "queues", *QUEUE))
    assert {"lost", "q-bills", "transient"} <= {each["name"] for each in found["queues"]}
    missing = set(of(theirs, "bindings", *BINDING)) - set(of(found, "bindings", *BINDING))
    assert {each[2] for each in missing} <= {'"bob-q"'}  # whose queue may be refused
    again = definitions(broker, "import", str(ours))
    assert (again.returncode, again.stderr) == (0, "")
    assert definitions(broker, "export", "-").stdout == ours.read_text()


def test_what_cannot_be_is_named_and_the_rest_is_there(broker: TestBroker, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({
        "vhosts": [{"name": "nowhere"}],
        "exchanges": [{"name": "odd", "vhost": "/", "type": "odd"}, {"name": "x2", "vhost": "/", "type": "topic"}],
        "queues": [{"name": "n", "vhost": "/", "arguments": {"x-max-length": -1}}],
        "bindings": [{"source": "x2", "vhost": "/", "destination": "n", "routing_key": "k"}],
    }))  # fmt: skip
    done = definitions(broker, "import", str(path))
    assert done.returncode == 1
    assert [line.split(": ", 2)[2].partition(":")[0] for line in done.stderr.splitlines()] == [
        "vhost 'nowhere'", "vhost '/', exchange 'odd'", "vhost '/', queue 'n'", "vhost '/', binding of 'x2' to 'n'",
    ]
    assert done.stdout == "1 policies, exchanges, queues and bindings are declared, 4 refused\n"
    assert '"x2"' in definitions(broker, "export", "-").stdout


def test_policies_by_the_command(broker: TestBroker) -> None:
    def policy(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "fanlight.cli", "policy", *words, "--http", broker.http_url]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    made = policy("set", "short", "^q", '{"max-length": 5, "max-age": "1h"}', "--vhost", "shop", "--priority", "3")
    assert (made.returncode, made.stdout) == (0, "note: policy 'short': not obeyed: max-age\n"), made.stderr
    wrong = policy("set", "short", "^(", '{"max-length": 5}', "--operator")
    assert (wrong.returncode, "invalid" in wrong.stderr) == (1, True)
    assert 'shop  short  ^q  all  3  {"max-length": 5, "max-age": "1h"}' in policy("ls").stdout.splitlines()
    removed = policy("rm", "short", "--vhost", "shop")
    assert (removed.returncode, removed.stdout) == (0, "removed: vhost 'shop', policy 'short'\n")
    assert policy("rm", "short", "--vhost", "shop").returncode == 1


@pytest.mark.parametrize(("text", "code"), [("{", 2), ("[]", 2), ('{"queues": [1]}', 1), ('{"queues": {}}', 2)])
def test_what_is_no_file_of_definitions(broker: TestBroker, tmp_path: Path, text: str, code: int) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    done = definitions(broker, "import", str(path))
    assert (done.returncode, done.stderr.startswith("fanlight definitions: "), "Traceback" in done.stderr) == (
        code, True, False
    )
