"""What holds for every test of the project: a skip has a reason, and may be forbidden.

With FANLIGHT_REQUIRE_ALL=1, as on the build machine, a skipped test fails: there everything a test may need
is installed, so a skip could only hide something. Fixtures are not here but in tests/conftest.py.

`make test` hands whole files to as many workers as there are processors, in the order of the collection; the file
that takes longest comes first, so that nobody waits for it at the end.
"""

import os
from collections.abc import Generator

import pytest

REQUIRE_ALL = os.environ.get("FANLIGHT_REQUIRE_ALL") == "1"


LONGEST = "test_packaging.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest file first; the others as they are."""
    items.sort(key=lambda item: item.path.name != LONGEST)


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
