"""`make test` itself: that a skip is counted with its reason, that it may be forbidden, that a failure is one.

Each test runs pytest in a folder of its own, with the project's conftest.py and options.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from scripts import run_checks
from scripts.run_checks import Outcome, check_of, read_report
from tests import require

ROOT = Path(__file__).resolve().parent.parent

SKIPS = """
import pytest

def test_passes(): pass

def test_skips(): pytest.skip("needs the moon")

@pytest.mark.skip(reason="needs the sun")
def test_is_marked(): pass

@pytest.mark.xfail(reason="known", strict=True)
def test_is_known_to_fail(): assert False
"""


def pytest_in(folder: Path, text: str, *, require_all: bool) -> tuple[int, str]:
    """(exit status, output) of pytest on one file; its report is report.xml."""
    shutil.copy(ROOT / "conftest.py", folder)
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    environment = {**os.environ, "FANLIGHT_REQUIRE_ALL": "1" if require_all else "0"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--junitxml=report.xml"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    return done.returncode, done.stdout


def test_skips_are_counted_with_their_reasons_and_known_failures_are_none(tmp_path: Path) -> None:
    status, _ = pytest_in(tmp_path, SKIPS, require_all=False)
    tests = read_report(tmp_path / "report.xml")
    assert status == 0
    assert (tests.passed, tests.failed) == (2, {})
    assert tests.skipped == {"needs the moon": 1, "needs the sun": 1}
    assert tests.note == "2 passed, 0 failed, 2 skipped"


def test_where_everything_is_required_every_skip_fails_and_says_which(tmp_path: Path) -> None:
    status, output = pytest_in(tmp_path, SKIPS, require_all=True)
    tests = read_report(tmp_path / "report.xml")
    assert status == 1
    assert (tests.passed, len(tests.failed), sum(tests.skipped.values())) == (2, 2, 0)
    assert "forbids this skip. Skipped: needs the moon" in output
    assert "forbids this skip. Skipped: needs the sun" in output


def test_where_everything_is_required_a_module_that_skips_itself_fails(tmp_path: Path) -> None:
    text = "import pytest\npytest.importorskip('a_module_that_nobody_has')\n"
    status, output = pytest_in(tmp_path, text, require_all=True)
    assert status != 0
    assert "a_module_that_nobody_has" in output
    assert pytest_in(tmp_path, text, require_all=False)[0] == 5  # nothing was run, which is no success either


def test_failures_and_errors_are_counted(tmp_path: Path) -> None:
    text = "def test_fails(): assert 1 == 2\ndef test_errs(nothing): pass\ndef test_passes(): pass\n"
    assert pytest_in(tmp_path, text, require_all=False)[0] == 1
    tests = read_report(tmp_path / "report.xml")
    assert (tests.passed, list(tests.failed)) == (1, ["test_it::test_fails", "test_it::test_errs"])
    assert tests.failed["test_it::test_fails"].startswith("assert 1 == 2")


UNSTEADY = """
from pathlib import Path

def test_passes_the_second_time():
    before = Path("before")
    was_there = before.exists()
    before.touch()
    assert was_there

def test_passes(): pass
"""


def run_twice(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Outcome, run_checks.Tests]:
    """A run of `text`, and a second one of what failed in it."""
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(run_checks, "ROOT", folder)
    monkeypatch.setattr(run_checks, "REPORTS", folder)
    command = (sys.executable, "-m", "pytest", "test_it.py")
    first = run_checks.run("tests", (*command, "--junitxml=report.xml"))
    return run_checks.run_again("tests", command, first, read_report(folder / "report.xml"))


def test_what_fails_once_and_passes_alone_is_named_and_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome, tests = run_twice(tmp_path, UNSTEADY, monkeypatch)
    assert outcome.passed
    assert tests.note == "2 passed, 1 in a second run only, 0 failed, 0 skipped"
    assert list(tests.unsteady) == ["test_it::test_passes_the_second_time"]
    assert tests.unsteady["test_it::test_passes_the_second_time"].startswith("assert")


def test_what_fails_twice_is_a_failure_and_so_is_what_failed_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome, tests = run_twice(tmp_path, UNSTEADY + "\ndef test_fails(): assert 1 == 2\n", monkeypatch)
    assert not outcome.passed
    assert tests.unsteady == {}
    assert set(tests.failed) == {"test_it::test_passes_the_second_time", "test_it::test_fails"}
    assert tests.note == "1 passed, 2 failed, 0 skipped"


def test_examples_of_hypothesis_have_no_time_limit() -> None:
    assert settings.default is not None
    assert settings.default.deadline is None
    assert settings(max_examples=3).deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check


def test_a_missing_program_skips_and_names_its_package() -> None:
    with pytest.raises(pytest.skip.Exception, match=r"no-such-program \(package moon\)"):
        require.command("no-such-program", package="moon")
    assert Path(require.command("sh", package="dash")).name == "sh"


def test_data_are_the_whole_where_it_is_and_else_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(require, "ROOT", tmp_path / "checkout")
    monkeypatch.delenv("FANLIGHT_REAL_DATA", raising=False)
    assert require.data("market") == require.SAMPLES / "market"
    (tmp_path / "shared" / "data" / "market").mkdir(parents=True)
    assert require.data("market") == tmp_path / "shared" / "data" / "market"

    monkeypatch.setenv("FANLIGHT_REAL_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(ValueError, match="elsewhere"):
        require.data("market")
    (tmp_path / "elsewhere" / "market").mkdir(parents=True)
    assert require.data("market") == tmp_path / "elsewhere" / "market"


@pytest.mark.parametrize(
    ("path", "check"),
    [
        ("tests/test_runner.py", "tests"),
        ("tests", "tests"),
        ("tests/pipeline", "spark"),
        ("tests/pipeline/test_source.py::test_one", "spark"),
        ("tests/pipelines", "tests"),
        ("clients/python/tests/test_it.py", "sdk"),
    ],
)
def test_a_file_that_is_asked_for_is_run_by_the_check_that_it_belongs_to(path: str, check: str) -> None:
    assert check_of(path) == check
