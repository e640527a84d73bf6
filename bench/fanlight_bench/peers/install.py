"""What is missing, the commands that install it, and the question whether they may run.

Nothing is installed unasked: without a terminal and without --yes the comparison goes on with the brokers that are
there. Debian's packages come from apt-get, amqtt goes into a virtual environment under build/.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

from fanlight_bench.peers.amqtt import Amqtt
from fanlight_bench.peers.peer import Peer, which

INSTALL_SECONDS = 900.0  # Erlang is 30 MB, and mirrors are slow

SERVICES = (
    "Debian starts these packages as services of the system, on their usual ports. They are not used here:\n"
    "  systemctl disable --now {names}    ends them"
)


class Log(Protocol):
    """Says a line to the user."""

    def __call__(self, line: str, /) -> None: ...


def missing(peers: Sequence[Peer]) -> list[Peer]:
    """Those whose program is not there."""
    return [peer for peer in peers if peer.program() is None]


def commands(peers: Sequence[Peer]) -> list[list[str]]:
    """What installs these, in order; nothing for what cannot be installed here."""
    packages = sorted({peer.package for peer in peers if peer.package})
    wanted: list[list[str]] = []
    if packages and which("apt-get"):
        before = [] if os.geteuid() == 0 else ["sudo"]
        wanted.append([*before, "apt-get", "install", "--yes", "--no-install-recommends", *packages])
    for peer in peers:
        if isinstance(peer, Amqtt):
            wanted += peer.installation()
    return wanted


def install(
    peers: Sequence[Peer], *, yes: bool, log: Log, terminal: bool | None = None,
    ask: Callable[[str], str] = input, run: Callable[[list[str]], int] | None = None,
) -> list[Peer]:  # fmt: skip
    """Install what is missing of these, if the user wants it; those that are missing then.

    terminal: whether somebody can be asked, as a rule whether standard input is one.
    """
    absent = missing(peers)
    if not absent:
        return []
    log(f"not installed: {', '.join(peer.name for peer in absent)}")
    wanted = commands(absent)
    if not wanted:
        log("there is no apt-get here: install them by hand to compare with them")
        return absent
    for command in wanted:
        log(f"  {shlex.join(command)}")
    if services := sorted({peer.package for peer in absent if peer.package}):
        log(SERVICES.format(names=" ".join(services)))
    if not (yes or _agreed(log, sys.stdin.isatty() if terminal is None else terminal, ask)):
        return absent
    for command in wanted:
        code = (run or _run)(command)
        if code:
            log(f"{shlex.join(command)}: exit code {code}; going on without what it installs")
    return missing(peers)


def _agreed(log: Log, terminal: bool, ask: Callable[[str], str]) -> bool:
    if not terminal:
        log("no terminal to ask at, and no --yes: going on with the brokers that are there")
        return False
    try:
        return ask("Run these commands? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _run(command: list[str]) -> int:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(command, env=environment, stdout=sys.stderr, check=False, timeout=INSTALL_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
        return 127
    return done.returncode
