"""Pages whose commands need more than a broker on this machine: each of their blocks runs as it stands there.

Our own commands, mosquitto's clients, curl and Helm are the real ones, on a real broker with the page's own users and
permissions. What cannot be here, an engine for containers, a cluster, a system manager, RabbitMQ, is a STAND_IN: it
takes the options that are written there, does for the files what the real one would, and refuses what it does not
know. test_debian.py builds and installs the package of docs/install.md, test_kubernetes.py validates what Helm makes.
"""

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from fanlight import sync
from fanlight_bench.launch import Broker
from tests import require
from tests.conftest import StartBroker

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
DEFINITIONS = ROOT / "tests" / "data" / "rabbitmq" / "definitions.json"
PASSWORD = "a password"

# Program -> why the real one cannot run here, and what runs in its place.
STAND_INS = {
    "rabbitmqctl": ("RabbitMQ is another broker", 'test "$1" = export_definitions && cp "$DEFINITIONS" "$2"'),
    "kubectl": ("needs a cluster", """
case "$1 $2 $3" in
  "create secret generic") file=${5#--from-file=}; test -s "$file" && echo "secret/$4 created" ;;
  "port-forward svc/fanlight 7421") ;;
  *) echo "kubectl: $*?" >&2; exit 2 ;;
esac"""),
    # Renders what it would install: to a cluster that is not there it can send nothing.
    "helm": ("installing needs a cluster", """
test "$1 $2 $3" = "install fanlight ./deploy/helm/fanlight" || { echo "helm: $*?" >&2; exit 2; }
shift 3; exec "$HELM" template fanlight "$ROOT/deploy/helm/fanlight" "$@" > rendered.yaml"""),
    "runuser": ("needs the package's user", 'test "$1 $2 $3" = "-u fanlight --" && shift 3 && exec "$@"'),
    # The users' passwords are asked for on a terminal, which a test has not: the rest is the command itself.
    "fanlightd": ("has no terminal", """
case "$1 $2" in
  "user add"|"user passwd") shift; verb=$1; shift; echo "$PASSWORD" | exec "$BIN/fanlightd" user "$verb" --stdin "$@" ;;
  *) exec "$BIN/fanlightd" "$@" ;;
esac"""),
}  # fmt: skip


def block(page: str, word: str) -> str:
    """The fenced block of a page that has this in it, without the indentation of a list; there must be one."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = [
        "\n".join(line.removeprefix(match["by"]) for line in match["text"].splitlines())
        for match in re.finditer(r"^(?P<by> *)```\w*\n(?P<text>.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
        if word in match["text"]
    ]
    assert len(found) == 1, f"{page}: {len(found)} blocks with {word!r}"
    return found[0]


@pytest.fixture
def shell(tmp_path: Path) -> Callable[..., str]:
    """Runs a block in a folder, with the stand-ins; the output, which `code` of exit comes with."""
    stand_ins = tmp_path / "stand-ins"
    stand_ins.mkdir()
    for program, (_, text) in STAND_INS.items():
        (stand_ins / program).write_text(f"#!/bin/sh\nset -eu\n{text.strip()}\n", encoding="utf-8")
        (stand_ins / program).chmod(0o755)

    def run(text: str, code: int = 0, **variables: str) -> str:
        own = {"DEFINITIONS": str(DEFINITIONS), "HELM": str(require.HELM), "ROOT": str(ROOT), "PASSWORD": PASSWORD}
        done = subprocess.run(
            ["sh", "-eu", "-c", text], cwd=tmp_path, stdin=subprocess.DEVNULL, check=False,
            capture_output=True, text=True,
            env={**os.environ, **own, "BIN": str(BIN), "PATH": f"{stand_ins}:{BIN}:{os.environ['PATH']}", **variables},
        )  # fmt: skip
        assert done.returncode == code, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    return run


def started(line: str, folder: Path, start_broker: StartBroker) -> Broker:
    """The broker of a line `fanlightd serve --flag file ...`, on free ports."""
    words = shlex.split(line)
    assert words[:2] == ["fanlightd", "serve"]
    flags = dict(zip(words[2::2], words[3::2], strict=True))
    return start_broker(**{flag[2:].replace("-", "_"): str(folder / file) for flag, file in flags.items()})


def without_serve(text: str) -> tuple[str, str]:
    """A block without its line `fanlightd serve`, and that line."""
    (serve,) = re.findall(r"^fanlightd serve .*$", text, re.MULTILINE)
    return text.replace(serve, ""), serve


def shown(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, and what is shown below each."""
    parts = re.split(r"^\$ (.*)$", text, flags=re.MULTILINE)[1:]
    return [(command, said.strip()) for command, said in zip(parts[::2], parts[1::2], strict=True)]


@contextlib.contextmanager
def listening(command: str, broker: Broker, subscriptions: int) -> Iterator[subprocess.Popen[str]]:
    """A subscriber of the page, once the broker has so many subscriptions more."""

    def there() -> int:
        with urllib.request.urlopen(f"{broker.http_url}/api/v1/subscriptions", timeout=60) as answer:
            return int(json.load(answer)["total"])

    wanted = there() + subscriptions
    environment = {**os.environ, "FANLIGHT_URL": broker.url, "PATH": f"{BIN}:{os.environ['PATH']}"}
    line = f"exec {command}".replace("mosquitto_sub", f"mosquitto_sub -p {broker.mqtt_port}")
    with subprocess.Popen(["sh", "-c", line], env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            while there() < wanted:
                assert process.poll() is None, command
                time.sleep(0.05)
            yield process
        finally:
            process.terminate()


def lines_of(process: subprocess.Popen[str], count: int) -> str:
    assert process.stdout is not None
    return "".join(process.stdout.readline() for _ in range(count)).strip()


def test_readme_what_is_published_is_seen_and_explained(shell: Callable[..., str], broker: Broker) -> None:
    require.command("mosquitto_pub", package="mosquitto-clients")
    ((subscriber, received),) = shown(block("../README.md", "fanlight sub 'stock.*.AAPL'"))
    variables = {"FANLIGHT_URL": broker.url, "FANLIGHT_HTTP_URL": broker.http_url}
    with listening(subscriber, broker, 2) as process:
        for command, said in shown(block("../README.md", "fanlight explain")):
            there = command.replace("mosquitto_pub", f"mosquitto_pub -p {broker.mqtt_port}")
            assert shell(there, **variables).rstrip() == said, command
        assert lines_of(process, 2) == received


def test_readme_subscribers_with_a_condition_get_what_it_is_true_of(broker: Broker) -> None:
    require.command("mosquitto_sub", package="mosquitto-clients")
    ((native, first),) = shown(block("../README.md", "fanlight sub 'stock.#' --where"))
    ((mqtt, second),) = shown(block("../README.md", "mosquitto_sub -V 5 -t 'stock/#'"))
    topic, payload = first.split(" ", 1)
    dear = {name: float(value) for name, value in json.loads(payload).items() if name in ("close", "volume")}
    with listening(native, broker, 1) as one, listening(mqtt, broker, 1) as other:
        with sync.connect(broker.url) as client:
            client.publish(topic, b"cheap", headers={"close": 1.0, "volume": 1.0})
            client.publish(topic, payload.encode(), headers=dear, receipt=True)
        assert lines_of(one, 1) == first
        name, close, volume = re.fullmatch(r"(\S+) close:(\S+) volume:(\S+)", lines_of(other, 1)).groups()  # type: ignore[union-attr]
        assert (name, float(close), float(volume)) == (topic.replace(".", "/"), dear["close"], dear["volume"])
        assert re.fullmatch(r"\S+ close:\S+ volume:\S+", second)


def test_security_the_fleet_is_let_in_and_kept_apart(
    shell: Callable[..., str], start_broker: StartBroker, tmp_path: Path
) -> None:
    require.command("mosquitto_pub", package="mosquitto-clients")
    (tmp_path / "permissions.toml").write_text(block("security.md", 'publish = "fleet/%u/#"'), encoding="utf-8")
    shell("fanlightd user add users.toml pump7 --group devices")
    broker = start_broker(users_file=str(tmp_path / "users.toml"), permissions=str(tmp_path / "permissions.toml"))
    for command, said in shown(block("security.md", "mosquitto_sub -V 5 -u pump7")):
        there = command.replace(" -P ...", f" -P '{PASSWORD}' -p {broker.mqtt_port}")
        assert shell(f"{there} || true").strip() == said, command


def test_security_a_dashboard_reads_by_http(
    shell: Callable[..., str], start_broker: StartBroker, tmp_path: Path
) -> None:
    require.command("curl", package="curl")
    (tmp_path / "token").write_text("a-token\n", encoding="utf-8")
    (tmp_path / "permissions.toml").write_text('[[allow]]\nuser = "dash"\nadmin = "read"\n', encoding="utf-8")
    shell("fanlightd user add users.toml dash; chmod 600 token")
    broker = start_broker(
        users_file=str(tmp_path / "users.toml"), permissions=str(tmp_path / "permissions.toml"),
        metrics_token_file=str(tmp_path / "token"),
    )  # fmt: skip
    text = block("security.md", "curl -u dash")
    text = text.replace("dash:...", f"'dash:{PASSWORD}'").replace("Bearer ...", "Bearer a-token")
    found = shell(text.replace("curl ", "curl -sS --fail ").replace("http://127.0.0.1:7421", broker.http_url))
    assert '"connections"' in found
    assert "fanlight_messages_in_total" in found


def test_security_the_way_over_from_mosquitto(
    shell: Callable[..., str], start_broker: StartBroker, tmp_path: Path
) -> None:
    require.command("mosquitto_passwd", package="mosquitto")
    shell(f"touch passwd; mosquitto_passwd -b passwd alice '{PASSWORD}'")
    (tmp_path / "acl").write_text("user alice\ntopic readwrite home/#\n", encoding="utf-8")
    text, serve = without_serve(block("security.md", "permissions import mosquitto"))
    shell(text.replace("/etc/mosquitto/", f"{tmp_path}/"))
    broker = started(serve, tmp_path, start_broker)
    for topic, status in (("home/a", 0), ("office/a", 0x87)):
        found = shell(
            f"mosquitto_pub -V 5 -q 1 -u alice -P '{PASSWORD}' -p {broker.mqtt_port} -t {topic} -m x || true"
        )
        assert ("Not authorized" in found) == bool(status), topic


def test_the_way_over_from_rabbitmq(
    shell: Callable[..., str], start_broker: StartBroker, tmp_path: Path
) -> None:
    """docs/migrate-rabbitmq.md as a whole, and the four lines of docs/security.md."""
    shell(block("migrate-rabbitmq.md", "fanlightd definitions rabbit.json"), code=1)  # names what has no equivalent
    shell(block("migrate-rabbitmq.md", "fanlightd user import users.toml rabbit.json").replace("\n", " || true\n", 2))
    broker = started(block("migrate-rabbitmq.md", "fanlightd serve").strip(), tmp_path, start_broker)
    assert broker.amqp_port
    (tmp_path / "users.toml").rename(tmp_path / "users-before.toml")
    shell(re.sub(r"(permissions import .*)", r"\1 || true", block("security.md", "rabbitmqctl export_definitions")))
    assert (tmp_path / "users.toml").read_text(encoding="utf-8")


def test_kubernetes_the_chart_takes_the_secret_that_was_made(shell: Callable[..., str], tmp_path: Path) -> None:
    require.helm()
    said = shell(block("kubernetes.md", "helm install fanlight"))
    assert "secret/fanlight-users created" in said
    rendered = (tmp_path / "rendered.yaml").read_text(encoding="utf-8")
    assert "secretName: fanlight-users" in rendered


def test_install_the_packages_user_makes_a_user(shell: Callable[..., str], tmp_path: Path) -> None:
    text = block("install.md", "runuser -u fanlight").replace("/var/lib/fanlight", str(tmp_path))
    shell(text)
    assert "alice" in (tmp_path / "users.toml").read_text(encoding="utf-8")


def test_docker_each_command_names_what_the_image_and_the_compose_file_have() -> None:
    """No engine for containers: stages, arguments of the build, services, and what the entry points are asked for."""
    page = (ROOT / "docs" / "docker.md").read_text(encoding="utf-8")
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    compose = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    stages = set(re.findall(r"^FROM \S+ AS (\S+)", image, re.MULTILINE))
    commands = re.findall(r"^docker (?:.*\\\n)*.*$", page, re.MULTILINE)
    verbs = set()
    for command in commands:
        words = shlex.split(command.replace("\\\n", " "), comments=True)
        after = dict(pairwise(words))
        verbs.add(words[1])
        if words[1] == "build":
            assert after.get("--target", "broker") in stages
            argument = after.get("--build-arg", "EXTRA=").partition("=")[0]
            assert re.search(rf"^ARG {argument}\b", image, re.MULTILINE)
        elif words[1] == "run":
            assert asked_for(words), command
        elif words[1] == "compose":
            assert words[2] in ("run", "up")
            assert words[2] == "up" or re.search(r"^  broker:$", compose, re.MULTILINE)
        else:
            assert words[1] in ("exec", "kill"), command
    assert verbs == {"build", "run", "compose", "exec", "kill"}


IMAGES = {
    "fanlight": ["fanlightd"], "fanlight-bench": ["fanlight", "bench"], "fanlight-spark": ["python", "-m"],
}  # fmt: skip


def asked_for(words: list[str]) -> bool:
    """Whether the entry point of the image of a `docker run` knows the command, or the module, behind it."""
    at = next(n for n, word in enumerate(words) if word in IMAGES and words[n - 1] not in ("--name", "container"))
    program = IMAGES[words[at]]
    command = [str(BIN / program[0]), *program[1:], *words[at + 1 : at + 2]]
    return len(command) == 1 or subprocess.run([*command, "--help"], capture_output=True, check=False).returncode == 0
