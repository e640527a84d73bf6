"""Nothing is installed unasked, and what cannot be installed does not stop the comparison."""

from pathlib import Path

import pytest

from fanlight_bench.peers import install
from fanlight_bench.peers.amqtt import VERSION, Amqtt
from fanlight_bench.peers.mosquitto import Mosquitto
from fanlight_bench.peers.nats import Nats, NatsOnOne


class Gone(Mosquitto):
    """Not installed until a command has run."""

    def __init__(self, ran: list[list[str]]) -> None:
        self.ran = ran

    def program(self) -> str | None:
        return "mosquitto" if self.ran else None


@pytest.fixture(autouse=True)
def debian(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("os.geteuid", lambda: 0)


APT = ["apt-get", "install", "--yes", "--no-install-recommends"]


def outcome(*, yes: bool = False, terminal: bool = False, answer: str = "") -> tuple[list[list[str]], list[str], int]:
    """(commands that ran, lines told, brokers that are still missing)."""
    ran: list[list[str]] = []
    told: list[str] = []

    def run(command: list[str]) -> int:
        ran.append(command)
        return 0

    left = install.install(
        [Gone(ran)], yes=yes, log=told.append, terminal=terminal, ask=lambda prompt: answer, run=run
    )
    return ran, told, len(left)


@pytest.mark.parametrize("answer", ["", "n", "no", "perhaps"])
def test_without_a_yes_nothing_runs_but_the_commands_are_shown(answer: str) -> None:
    ran, told, left = outcome(terminal=True, answer=answer)
    assert (ran, left) == ([], 1)
    assert "  apt-get install --yes --no-install-recommends mosquitto" in told


@pytest.mark.parametrize("answer", ["y", "Y", " yes "])
def test_a_yes_runs_them(answer: str) -> None:
    assert outcome(terminal=True, answer=answer)[::2] == ([[*APT, "mosquitto"]], 0)


def test_without_a_terminal_it_goes_on_with_what_is_there_and_says_so() -> None:
    ran, told, left = outcome(answer="y")
    assert (ran, left) == ([], 1)
    assert "no terminal to ask at, and no --yes: going on with the brokers that are there" in told


def test_yes_on_the_command_line_asks_nobody() -> None:
    assert outcome(yes=True)[::2] == ([[*APT, "mosquitto"]], 0)


def test_a_package_is_installed_once_and_only_if_something_of_it_is_missing(tmp_path: Path) -> None:
    wanted = install.commands([Nats(), NatsOnOne(), Amqtt(tmp_path)])
    assert wanted[0] == [*APT, "nats-server"]
    assert [command[-1] for command in wanted[1:]] == [str(tmp_path), f"amqtt=={VERSION}"]
    assert install.install([], yes=True, log=pytest.fail) == []


def test_who_is_not_root_asks_by_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert install.commands([Mosquitto()]) == [["sudo", *APT, "mosquitto"]]


def test_where_there_is_no_apt_one_is_told_to_install_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "which", lambda name: None)
    _, told, left = outcome(yes=True)
    assert left == 1
    assert "by hand" in told[-1]


def test_a_command_that_fails_is_told_and_the_next_one_runs(tmp_path: Path) -> None:
    ran: list[list[str]] = []
    told: list[str] = []

    def run(command: list[str]) -> int:
        ran.append(command)
        return 100

    gone = Gone([])
    assert install.install([gone, Amqtt(tmp_path)], yes=True, log=told.append, run=run) != []
    assert len(ran) == 3
    assert sum("exit code 100" in line for line in told) == 3
