"""Run every check of the project and end with one summary: what `make test` does.

The checks are independent commands; all of them run even when one fails, and the summary names each with its
time. Skipped tests are counted there with their reasons, read from pytest's own report, so that nothing is
left out silently. The exit status is 0 only if every check passed; with FANLIGHT_REQUIRE_ALL=1 a skip is a
failure (see the root conftest.py).

    run_checks.py [--only CHECK]... [arguments for pytest]
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.require import SAMPLES, data_folder  # noqa: E402

REPORT = ROOT / "build" / f"tests-{sys.version_info.major}.{sys.version_info.minor}.xml"
PYTHON = (sys.executable, "-m")

CHECKS: dict[str, tuple[str, ...]] = {
    "ruff": (*PYTHON, "ruff", "check", "."),
    "mypy": (*PYTHON, "mypy"),
    "tests": (*PYTHON, "pytest", f"--junitxml={REPORT}"),
}


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
    failed: int
    skipped: Counter[str]  # reason -> how many

    @property
    def note(self) -> str:
        """The counts in words."""
        skipped = sum(self.skipped.values())
        return f"{self.passed} passed, {self.failed} failed, {skipped} skipped"


def read_report(path: Path) -> Tests:
    """Count the outcomes in a JUnit report; expected failures count as passed."""
    passed = failed = 0
    skipped: Counter[str] = Counter()
    for case in ElementTree.parse(path).iter("testcase"):
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif skip is not None and skip.get("type") != "pytest.xfail":
            skipped[skip.get("message") or "no reason given"] += 1
        else:
            passed += 1
    return Tests(passed, failed, skipped)


def run(name: str, command: tuple[str, ...]) -> Outcome:
    """Run one check with its output passed through."""
    print(f"\n--- {name}: {shlex.join(command[1:])}", flush=True)
    started = time.monotonic()
    # No terminal input: a check that asks a question must not wait for an answer.
    status = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode
    note = "" if status == 0 else f"exit status {status}"
    return Outcome(name, time.monotonic() - started, passed=status == 0, note=note)


def main() -> int:
    """Run the checks asked for; return the exit status."""
    parser = argparse.ArgumentParser(description="Run every check and end with one summary.")
    parser.add_argument("--only", action="append", choices=list(CHECKS), help="only this one (repeatable)")
    options, pytest_arguments = parser.parse_known_args()

    REPORT.parent.mkdir(exist_ok=True)
    REPORT.unlink(missing_ok=True)
    outcomes = []
    for name in options.only or CHECKS:
        extra = tuple(pytest_arguments) if name == "tests" else ()
        outcomes.append(run(name, CHECKS[name] + extra))

    print(f"\n=== summary (Python {sys.version.split()[0]})")
    tests = read_report(REPORT) if REPORT.exists() else None
    for outcome in outcomes:
        note = tests.note if outcome.name == "tests" and tests else outcome.note
        verdict = "ok" if outcome.passed else "FAILED"
        print(f"{verdict:<6} {outcome.name:<6} {outcome.seconds:7.1f} s  {note}".rstrip())
    if tests:
        print(f"real data: {'the samples in tests/data' if data_folder() == SAMPLES else data_folder()}")
    if tests and tests.skipped:
        print(f"{sum(tests.skipped.values())} skipped:")
        for reason, count in tests.skipped.most_common():
            print(f"  {count:>4} x {reason}")
    failed = [outcome.name for outcome in outcomes if not outcome.passed]
    strict = " (a skip counts as a failure)" if os.environ.get("FANLIGHT_REQUIRE_ALL") == "1" else ""
    print(f"failed: {', '.join(failed)}" if failed else "everything passed", strict, sep="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
