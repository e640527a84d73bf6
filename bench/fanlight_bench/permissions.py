"""`python -m fanlight_bench permissions`: what permissions cost, of a whole broker and by real sockets.

    python -m fanlight_bench permissions                            A, B, C, D natively and by MQTT, 5 rounds: 6 minutes
    python -m fanlight_bench permissions --scenarios A,D --schemes mqtt --rounds 1 --duration 0.5
    python -m fanlight_bench permissions --instructions          instructions of a publish, by callgrind: 8 minutes
    python -m fanlight_bench permissions --decisions             cold decisions and reloads, without a broker: 1 minute

Scenarios are those of `python -m fanlight_bench peers`. Each round has a broker with a file of 100,000 rules and one
without, one directly after the other, first the one and next time the other, with the same users and passwords. What is
compared is processor time of the broker a delivery, from /proc; `ratio` is that with permissions, divided by that
without: the median of the rounds. The bar is 1.03.

There are 1,000 users of 100 rules each, of which connections are some. Of a user's rules one allows what the scenario
does; others allow or deny topics of its own. So subscriptions with a wildcard at the beginning are partly allowed, and
each message is published by a class of clients of its own.

The report is JSON on standard output; a line a run is on standard error. Exit codes: 0 done, whatever the figures are;
1 a run failed, or lost something; 2 the command line is wrong.
"""

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from fanlight_bench.machine import machine
from fanlight_bench.peers import compare
from fanlight_bench.peers.contenders import Contender
from fanlight_bench.peers.drive import drive
from fanlight_bench.peers.fanlight import Fanlight
from fanlight_bench.peers.peer import Up
from fanlight_bench.peers.plan import ASKED, PlannedScenario, Step
from fanlight_bench.peers.results import Row

OK, FAILED, WRONG = 0, 1, 2
SCENARIOS, SCHEMES = "A,B,C,D", "fanlight,mqtt"
RULES, USERS = 100_000, 1_000
BAR = 1.03
DENIED_EVERY = 10  # of a user's rules
USER, PASSWORD = "u", "bench"
# Of PASSWORD, at the lowest costs: what is measured begins after the logins.
HASH = "$argon2id$v=19$m=8,t=1,p=1$gDnodGgh1O8$OaW326IhCPEmFlsDPWltcg"
OFF, ON = "off", "on"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        asked = [ASKED[letter] for letter in _words(options.scenarios)]
    except KeyError as error:
        print(f"no scenario is called {error}; there are {', '.join(ASKED)}", file=sys.stderr)
        return WRONG
    if options.decisions:
        return _measure_decisions(options)
    if options.instructions:
        return _count_instructions([each.letter for each in asked], options)
    runs: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="fanlight-permissions-") as folder, compare.many_files():
        contenders = made(Path(folder), options.rules, options.users)
        for step in steps(asked, contenders, _words(options.schemes), options.rounds):
            row = compare.run(step, drive, options.duration, options.warmup)
            runs.append(row)
            print(_line(row), file=sys.stderr, flush=True)
    report = {
        "machine": machine(), "rules": options.rules, "users": options.users, "rounds": options.rounds,
        "duration": options.duration, "bar": BAR, "ratios": ratios(runs), "runs": runs,
    }  # fmt: skip
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")
    return FAILED if any(row.get("error") or row.get("faults") for row in runs) else OK


def _count_instructions(letters: list[str], options: argparse.Namespace) -> int:
    """With --instructions: no sockets, and other work on the machine does not matter."""
    from fanlight_bench.micro import permission_instructions as counting  # here: it imports the broker

    known, schemes = list(counting.SETUPS), _words(options.schemes)
    if not set(letters) <= set(known) or not set(schemes) <= {"fanlight", "mqtt"}:
        print(f"--instructions knows {', '.join(known)}, by fanlight and mqtt", file=sys.stderr)
        return WRONG
    found = []
    with tempfile.TemporaryDirectory(prefix="fanlight-permissions-") as folder:
        file = Path(folder) / "permissions.csv"
        file.write_text(rows(options.rules, options.users), encoding="utf-8")
        try:
            for row in counting.rows(letters, schemes, file, options.users, BAR):
                found.append(row)
                print(f"bench: {json.dumps(row)}", file=sys.stderr, flush=True)
        except (OSError, RuntimeError) as error:
            print(f"bench: {error}", file=sys.stderr)
            return FAILED
    json.dump({"machine": machine(), "rules": options.rules, "users": options.users, "bar": BAR, "rows": found},
              sys.stdout, indent=1)  # fmt: skip
    sys.stdout.write("\n")
    return OK


def _measure_decisions(options: argparse.Namespace) -> int:
    """With --decisions: files of three shapes, each with as many rules."""
    from fanlight_bench.micro import permission_bars as bars  # here: it imports the broker

    found = []
    for row in bars.rows(options.rules, options.rounds):
        found.append(row)
        print(f"bench: {json.dumps(row)}", file=sys.stderr, flush=True)
    json.dump({
        "machine": machine(), "rules": options.rules, "rows": found,
        "bars": {
            "decision_us": bars.DECISION_US, "reload_seconds": bars.RELOAD_SECONDS, "turn_ms": bars.TURN_MS,
            "bytes_per_rule": bars.RULE_BYTES,
        },
    }, sys.stdout, indent=1)  # fmt: skip
    sys.stdout.write("\n")
    return OK


@dataclass(frozen=True)
class UpWithUsers(Up):
    """A broker that users log in to."""

    users: int

    def url(self, scheme: str) -> str:
        return f"{scheme}://{USER}:{PASSWORD}@127.0.0.1:{self.ports[scheme]}?users={self.users}"


class FanlightWithUsers(Fanlight):
    """A broker that knows 1,000 users, and their permissions if there are any in its settings."""

    def __init__(self, settings: dict[str, str], users: int) -> None:
        super().__init__(settings)
        self.users = users

    @contextlib.contextmanager
    def start(self, folder: Path, cpu: int | None) -> Iterator[Up]:
        with super().start(folder, cpu) as up:
            yield UpWithUsers(up.ports, up.pid, self.users)


def made(folder: Path, rules: int, users: int) -> list[Contender]:
    """The same broker without permissions, and with them."""
    passwords, permissions = folder / "passwords", folder / "permissions.csv"
    passwords.write_text("".join(f"{USER}{number}:{HASH}\n" for number in range(users)), encoding="utf-8")
    passwords.chmod(0o600)
    permissions.write_text(rows(rules, users), encoding="utf-8")
    settings = {"password_file": str(passwords), "password_queue_max": "10000"}  # a quarter of it for an address
    return [
        Contender(OFF, "without permissions", FanlightWithUsers(settings, users), ()),
        Contender(ON, "with them", FanlightWithUsers({**settings, "permissions": str(permissions)}, users), ()),
    ]


def rows(rules: int, users: int) -> str:
    """A file of permissions (CSV): the rules of users in turn, and as the last ones those that allow the scenario."""
    lines = ["effect,user,everything\n"]
    for number in range(max(0, rules - users)):
        effect, filter = ("deny", "private/{}/#") if number // users % DENIED_EVERY == 0 else ("allow", "own/{}/+/temp")
        lines.append(f"{effect},{USER}{number % users},{filter.format(number)}\n")
    lines += [f"allow,{USER}{number},#\n" for number in range(users)]
    return "".join(lines)


def steps(
    asked: Sequence[PlannedScenario], contenders: Sequence[Contender], schemes: Sequence[str], rounds: int
) -> Iterator[Step]:
    """All runs in their order. Contenders that are compared are neighbours in time, and take turns to be the first."""
    for one in asked:
        for scheme in schemes:
            for number in range(rounds):
                for contender in contenders if number % 2 == 0 else reversed(contenders):
                    yield Step(one, contender, scheme, number)


def ratios(runs: Sequence[Row]) -> list[dict[str, Any]]:
    """A row for each scenario and scheme: medians with permissions and without, and the median of the ratios."""
    found = []
    for letter, scheme in dict.fromkeys((row["scenario"], row["scheme"]) for row in runs):
        mine = [
            row
            for row in runs
            if (row["scenario"], row["scheme"]) == (letter, scheme) and not row.get("error") and not row.get("faults")
        ]
        both = {
            name: {row["round"]: float(row["us_per_delivery"]) for row in mine if row["contender"] == name}
            for name in (OFF, ON)
        }
        pairs = [(both[OFF][number], both[ON][number]) for number in both[OFF] if number in both[ON]]
        if not pairs:
            continue
        ratio = median(on / off for off, on in pairs)
        found.append({
            "scenario": letter, "scheme": scheme, "rounds": len(pairs),
            "us_per_delivery_off": round(median(off for off, _ in pairs), 4),
            "us_per_delivery_on": round(median(on for _, on in pairs), 4),
            "ratio": round(ratio, 4), "least": round(min(on / off for off, on in pairs), 4),
            "most": round(max(on / off for off, on in pairs), 4), "met": ratio <= BAR,
        })  # fmt: skip
    return found


def _line(row: Row) -> str:
    what = f"bench: {row['scenario']} by {row['scheme']}, round {row['round'] + 1}, permissions {row['contender']}"
    if row.get("error"):
        return f"{what}: {str(row['error']).splitlines()[0]}"
    faults = f", FAULTS {row['faults']}" if row["faults"] else ""
    return f"{what}: {row['us_per_delivery']:.4f} µs a delivery, {row['deliveries_per_second']:,.0f}/s{faults}"


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_bench permissions", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("--scenarios", default=SCENARIOS, metavar="A,B", help="of the peers' bench (%(default)s)")
    add("--schemes", default=SCHEMES, metavar="NAME,NAME", help="fanlight, mqtt, mqtt5 (%(default)s)")
    add("--rounds", type=int, default=5, metavar="N", help="of each, with permissions and without (%(default)s)")
    add("--duration", type=float, default=2.0, metavar="SECONDS", help="measured, of a run (%(default)s)")
    add("--warmup", type=float, default=1.0, metavar="SECONDS", help="before it: topics are decided (%(default)s)")
    add("--rules", type=int, default=RULES, help="of the file (%(default)s)")
    add("--users", type=int, default=USERS, help="that have them (%(default)s)")
    add("--instructions", action="store_true", help="count instructions of a publish by callgrind, without sockets")
    add("--decisions", action="store_true", help="time cold decisions and reloads of one process, without a broker")
    return parser


if __name__ == "__main__":
    sys.exit(main())
