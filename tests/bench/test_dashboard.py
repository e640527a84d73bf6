"""`python -m fanlight_bench dashboard`: that it asks what the pages ask, and says what was taken."""

import json
import re

import pytest

from fanlight_bench import dashboard
from tests.require import ROOT

PAGES = ROOT / "broker" / "fanlight_broker" / "admin" / "dashboard"


def test_it_runs_and_says_what_was_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert dashboard.main(["--pages", "overview", "--rounds", "1", "--duration", "0.2", "--faster", "100"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report["taken"]) == {"overview"}
    (run,) = report["runs"]
    assert run["turns"] > 0


def test_an_unknown_page_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert dashboard.main(["--pages", "overview,news"]) == 2
    assert "news" in capsys.readouterr().err


def test_the_paths_are_those_of_the_pages() -> None:
    asked = {path.partition("?")[0] for paths in dashboard.PAGES.values() for path in paths}
    written = {path for each in PAGES.glob("*.js") for path in re.findall(r'"(api/v1/[\w/-]+)"', each.read_text())}
    assert asked <= written
