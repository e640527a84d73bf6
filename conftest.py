"""What holds for every test of the project: a skip has a reason, and may be forbidden.

With FANLIGHT_REQUIRE_ALL=1, as on the build machine, a skipped test fails: there everything a test may need
is installed, so a skip could only hide something. Fixtures are not here but in tests/conftest.py.

An example of Hypothesis may take as long as it takes: the machine may be slow, or have other work.

`make test` hands whole files to a few workers, in the order of the collection; the files that take longest come first,
so that nobody waits for them at the end.
"""

import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

# A shell that starts a run in the background has SIGINT ignored in it, which everything that tests start would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

FROZEN_FOR = pytest.StashKey[Path]()  # the file of tests before which what was there was frozen
REQUIRE_ALL = os.environ.get("FANLIGHT_REQUIRE_ALL") == "1"


# By the clock: the first two compile, and wait for a worker of Celery. Those of Spark are a run of their own.
LONGEST = (
    "test_packaging.py", "test_celery.py", "test_crash.py", "test_docs.py", "test_dashboard.py", "test_hostile.py",
    "test_archive.py", "test_queue_promises.py", "test_fuzz.py", "test_bench.py", "test_audience.py", "test_killed.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first; the others as they are."""
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(LONGEST)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What stays to the end, modules and 20,000 tests, is not looked at by the collections that tests ask for.

    Once for each file, as some tests, of the benches for one, end with nothing frozen. Not asked is how much is frozen:
    Python counts it object by object, which with 20,000 tests takes longer than most of them.
    """
    if item.path != item.config.stash.get(FROZEN_FOR, None):
        item.config.stash[FROZEN_FOR] = item.path
        gc.collect()
        gc.freeze()


def forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure that says which skip it was."""
    # An expected failure is reported as a skip too, and is none.
    if REQUIRE_ALL and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"FANLIGHT_REQUIRE_ALL=1 forbids this skip. {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skips of tests: by a mark, in a fixture, or in the test itself."""
    report = yield
    forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skips of whole modules, as by `pytest.importorskip` at the top."""
    report = yield
    forbid_skip(report)
    return report
