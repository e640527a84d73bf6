"""Run every check of the project and end with one summary: what `make test` does.

The checks are independent commands; all of them run even when one fails, and the summary names each with its time.
Tests that failed are named there again, and skipped ones counted with their reasons, both read from pytest's own
report: nothing is left out silently, and the end of a long log says what to look for. The exit status is 0 only if
every check passed; with FANLIGHT_REQUIRE_ALL=1 a skip is a failure (see the root conftest.py).

The tests start thousands of processes beside one another, so a busy machine can make one of them fail for no fault of
the code. In a run of all tests, up to AGAIN_MAX failures are run a second time, alone. Who passes then is named in the
summary with what it said the first time: such a test depends on the machine, and is to be mended.

Two run at a time, as many of them have one processor at work, or wait for something else. What they say is shown as a
whole when they end, but for the tests, which show how far they are.

    run_checks.py [--only CHECK]... [arguments for pytest, such as -k WORD or paths of test files]
"""

import argparse
import os
import shlex
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.require import SAMPLES, data_folder  # noqa: E402

REPORTS = ROOT / "build" / f"tests-{sys.version_info.major}.{sys.version_info.minor}"
LINES_SHOWN = 12  # of what a failed test says, in the summary
NOTHING_COLLECTED = 5  # pytest's exit status
AGAIN_MAX = 3  # failed tests that get a second run; if there are more, it is not the machine
PYTHON = (sys.executable, "-m")
SHOWING = Lock()  # whoever prints the whole output of a check

CHECKS: dict[str, tuple[str, ...]] = {
    "ruff": (*PYTHON, "ruff", "check", "."),
    "cython-lint": (sys.executable, "scripts/lint_cython.py"),
    "mypy": (*PYTHON, "mypy"),
    "stubs": (sys.executable, "scripts/check_stubs.py"),
    "debug": (sys.executable, "scripts/check_debug.py"),
    "tests": (*PYTHON, "pytest"),
    "sdk": (*PYTHON, "pytest"),
    # What each JVM of the tests with Spark would read anew.
    "classes": (sys.executable, "scripts/share_classes.py"),
    # Spark gives the worker that plans a stream 10 s to start, which no setting changes; a busy machine may need more,
    # and a pause.
    "spark": (
        *PYTHON, "pytest", "--reruns=9", "--reruns-delay=10", "--only-rerun=Python worker failed to connect back",
    ),
}  # fmt: skip
# Each worker is handed whole files, in order: what a file starts is started once. Half of the tests' time is spent
# waiting for timers, disks and processes, so there are two workers more than processors; many workers would starve the
# brokers and generators that the tests start beside them.
WORKERS = min(4, (os.cpu_count() or 1) + 2)
WHOLE_FILES = ("--dist=loadfile", "--no-loadscope-reorder")
SIDE_BY_SIDE = {
    "tests": ("-n", str(WORKERS), *WHOLE_FILES),
    # A Spark each. It waits for itself most of the time: planning, Python workers that start, the disk.
    "spark": ("-n", "2", *WHOLE_FILES),
}
# In this order in each lane: "tests" takes as long as all the others.
LANES = (("tests",), ("debug", "ruff", "cython-lint", "mypy", "stubs", "sdk", "classes", "spark"))
SHOWN_AT_ONCE = "tests"
# Three runs: the SDK is a distribution of its own, and so are its tests; those of the pipeline share a Spark, which has
# threads that disturb hypothesis (tests/without_spark).
FOLDERS = {"tests": "tests", "sdk": "clients/python/tests", "spark": "tests/pipeline"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one check ended."""

    name: str
    seconds: float
    passed: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class Tests:
    """What pytest's JUnit report says."""

    passed: int
    failed: dict[str, str]  # test -> what it says, cut to a few lines
    skipped: Counter[str]  # reason -> how many
    unsteady: dict[str, str] = field(default_factory=dict)  # as `failed`, of the first run; they passed in the second

    @property
    def note(self) -> str:
        """The counts in words."""
        skipped = sum(self.skipped.values())
        second = f", {len(self.unsteady)} in a second run only" if self.unsteady else ""
        return f"{self.passed} passed{second}, {len(self.failed)} failed, {skipped} skipped"


def read_report(path: Path) -> Tests:
    """Count the outcomes in a JUnit report; expected failures count as passed."""
    passed = 0
    failed: dict[str, str] = {}
    skipped: Counter[str] = Counter()
    for case in ElementTree.parse(path).iter("testcase"):
        skip = case.find("skipped")
        wrong = [*case.findall("failure"), *case.findall("error")]
        if wrong:
            # A failed worker's message can be a page: the whole of it stands further up, in pytest's own output.
            lines = (wrong[0].get("message") or wrong[0].text or "no message").splitlines()
            failed[f"{case.get('classname')}::{case.get('name')}"] = "\n".join(lines[:LINES_SHOWN])
        elif skip is not None and skip.get("type") != "pytest.xfail":
            skipped[skip.get("message") or "no reason given"] += 1
        else:
            passed += 1
    return Tests(passed, failed, skipped)


def run(name: str, command: Sequence[str], *, selected: bool = False, beside: bool = False) -> Outcome:
    """Run one check with its output passed through; if tests were `selected`, finding none of them is no failure.

    beside: others run at the same time, so the output is shown when it has ended
    """
    title = f"\n--- {name}: {shlex.join(command[1:])}"
    if not beside:
        print(title, flush=True)
    started = time.monotonic()
    # No terminal input: a check that asks a question must not wait for an answer.
    done = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False, text=True, errors="replace",
        stdout=subprocess.PIPE if beside else None, stderr=subprocess.STDOUT if beside else None,
    )  # fmt: skip
    status = done.returncode
    if beside:
        with SHOWING:
            print(title, done.stdout, sep="\n", end="", flush=True)
    passed = status == 0 or (selected and status == NOTHING_COLLECTED)
    return Outcome(name, time.monotonic() - started, passed=passed, note="" if passed else f"exit status {status}")


def check_of(path: str) -> str:
    """The run that a test file or a folder of tests belongs to."""
    if path.startswith("clients/"):
        return "sdk"
    return "spark" if f"{path.partition('::')[0]}/".startswith(f"{FOLDERS['spark']}/") else "tests"


def run_tests(name: str, arguments: Sequence[str], *, beside: bool = False) -> tuple[Outcome, Tests | None]:
    """Run the tests of one folder, or those of the files that `arguments` name there."""
    paths = [argument for argument in arguments if (ROOT / argument.partition("::")[0]).exists()]
    rest = [argument for argument in arguments if argument not in paths]
    ours = [path for path in paths if check_of(path) == name]
    report = REPORTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    if paths and not ours:
        return Outcome(name, 0.0, passed=True, note="not asked for"), None
    workers = SIDE_BY_SIDE.get(name, ()) if not ours else ()
    others = (f"--ignore={FOLDERS['spark']}",) if name == "tests" else ()
    cache = ("-o", f"cache_dir={REPORTS / f'{name}.cache'}")  # of its own: two runs of tests may be under way
    target = (*cache, *others, *(ours or [FOLDERS[name]]), *rest)
    command = (*CHECKS[name], *workers, f"--junitxml={report}", *target)
    outcome = run(name, command, selected=bool(arguments), beside=beside)
    if not report.exists():
        return outcome, None
    tests = read_report(report)
    if not arguments and 0 < len(tests.failed) <= AGAIN_MAX:
        outcome, tests = run_again(name, (*CHECKS[name], *target), outcome, tests, beside=beside)
    return replace(outcome, note=tests.note), tests


def run_again(
    name: str, command: Sequence[str], first: Outcome, tests: Tests, *, beside: bool = False
) -> tuple[Outcome, Tests]:
    """Run what failed in the last run of pytest's `command` again, one test after another; return what holds now."""
    report = REPORTS / f"{name}-again.xml"
    report.unlink(missing_ok=True)
    again = run(f"{name} again", (*command, "--last-failed", f"--junitxml={report}"), beside=beside)
    second = read_report(report) if report.exists() else Tests(0, {}, Counter())
    passed = again.passed and second.passed == len(tests.failed)
    outcome = replace(first, seconds=first.seconds + again.seconds, passed=passed)
    unsteady = {} if not passed else tests.failed
    failed = {} if passed else tests.failed | second.failed
    return outcome, replace(tests, passed=tests.passed + len(unsteady), failed=failed, unsteady=unsteady)


def run_check(name: str, arguments: Sequence[str], *, beside: bool = False) -> tuple[Outcome, Tests | None]:
    """Run one of CHECKS."""
    if name in FOLDERS:
        return run_tests(name, arguments, beside=beside)
    return run(name, CHECKS[name], beside=beside), None


def run_all(names: Iterable[str], arguments: Sequence[str]) -> list[tuple[Outcome, Tests | None]]:
    """Run these checks, each lane of LANES beside the other; in the order of `names`, what became of each."""
    wanted = dict.fromkeys(names)
    lanes = [lane for each in LANES if (lane := [name for name in each if name in wanted])]
    beside = len(lanes) > 1
    print(*(f"--- one after another: {', '.join(lane)}" for lane in lanes if beside), sep="\n", flush=True)

    def run_lane(lane: Sequence[str]) -> dict[str, tuple[Outcome, Tests | None]]:
        return {name: run_check(name, arguments, beside=beside and name != SHOWN_AT_ONCE) for name in lane}

    found: dict[str, tuple[Outcome, Tests | None]] = {}
    with ThreadPoolExecutor(len(LANES)) as pool:
        for ended in pool.map(run_lane, lanes):
            found |= ended
    return [found[name] for name in wanted]


def main() -> int:
    """Run the checks asked for; return the exit status."""
    parser = argparse.ArgumentParser(description="Run every check and end with one summary.", allow_abbrev=False)
    parser.add_argument("--only", action="append", choices=list(CHECKS), help="only this one (repeatable)")
    options, arguments = parser.parse_known_args()

    REPORTS.mkdir(parents=True, exist_ok=True)
    outcomes: list[Outcome] = []
    skipped: Counter[str] = Counter()
    wrong: dict[str, str] = {}
    unsteady: dict[str, str] = {}
    for outcome, tests in run_all(options.only or CHECKS, arguments):
        outcomes.append(outcome)
        if tests:
            skipped += tests.skipped
            wrong |= tests.failed
            unsteady |= tests.unsteady

    print(f"\n=== summary (Python {sys.version.split()[0]})")
    for outcome in outcomes:
        verdict = "ok" if outcome.passed else "FAILED"
        print(f"{verdict:<6} {outcome.name:<11} {outcome.seconds:7.1f} s  {outcome.note}".rstrip())
    print(f"real data: {'the samples in tests/data' if data_folder() == SAMPLES else data_folder()}")
    if skipped:
        print(f"{skipped.total()} skipped:")
        for reason, count in skipped.most_common():
            print(f"  {count:>4} x {reason}")
    for test, says in unsteady.items():
        print(f"passed in a second run only {test}\n{textwrap.indent(says, '    ')}")
    for test, says in wrong.items():
        print(f"failed {test}\n{textwrap.indent(says, '    ')}")
    failed = [outcome.name for outcome in outcomes if not outcome.passed]
    strict = " (a skip counts as a failure)" if os.environ.get("FANLIGHT_REQUIRE_ALL") == "1" else ""
    print(f"failed: {', '.join(failed)}" if failed else "everything passed", strict, sep="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
