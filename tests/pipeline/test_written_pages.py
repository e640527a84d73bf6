"""The reports that the jobs have written in the tests before, in a real browser: nothing blank, cut, or asked for.

It is the last file of the folder by its name, and starts one browser for all. Of each job and of each title, the
largest page is looked at that is there; those of jobs that this process has tested must be. What a process beside it
writes later is not looked at.
"""

import contextlib
import os
import re
from pathlib import Path

import pytest

from fanlight_spark.jobs.__main__ import jobs
from tests.dashboard.browser import Browser
from tests.dashboard.reports import looked_at

TITLE = re.compile(r"<h1>(.*?)</h1>")
#: Jobs that are tested in another file than theirs.
ELSEWHERE = {"whatif": "audience"}


def test_pages_of_all_jobs_are_whole_in_a_browser(pages: Path) -> None:
    own = f".tested{os.environ.get('PYTEST_XDIST_WORKER', '')}"
    tested = {each.name.removesuffix(own) for each in pages.iterdir() if each.name.endswith(own)}
    expected = {name for name, _ in jobs() if f"test_{ELSEWHERE.get(name, name)}" in tested}
    if not expected:
        pytest.skip("no test of a job has run before this one in this session")
    largest: dict[tuple[str, str], Path] = {}
    for page in sorted(pages.glob("*.html"), key=lambda page: page.stat().st_size):
        found = TITLE.search(page.read_text(encoding="utf-8"))
        assert found, page
        largest[(page.name.split("-")[0], found[1].split(",")[0])] = page
    made = {module.removeprefix("test_") for module, _ in largest}
    assert {ELSEWHERE.get(name, name) for name in expected} <= made, "a job was tested and its page was not kept"
    charts = 0
    with contextlib.closing(Browser()) as browser:
        for (module, title), page in sorted(largest.items()):
            name = re.sub(r"[^a-z0-9]+", "-", f"{module.removeprefix('test_')} {title}".lower()).strip("-")
            charts += len(looked_at(browser, page, name))
    assert charts >= len(expected)
