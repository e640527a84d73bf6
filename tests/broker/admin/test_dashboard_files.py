"""The dashboard's files: who gets the page at /, by which headers, and that nothing else can be reached."""

import re

import pytest

from fanlight_broker.admin import dashboard_files
from fanlight_broker.admin.dashboard_files import FOLDER, DashboardFiles

from .conftest import Serve, Served

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
async def page(serve: Serve) -> Served:
    return await serve(dashboard=True)


async def test_a_browser_gets_the_page_and_a_json_client_the_list_of_paths(page: Served) -> None:
    async with page.session.get(page.url, headers=BROWSER) as answer:
        assert (answer.status, answer.content_type) == (200, "text/html")
        assert "<title>Fanlight</title>" in await answer.text()
    status, listed = await page.get("/", headers={"Accept": "application/json"})
    assert status == 200
    assert "/stats" in listed["paths"]
    assert await page.get("/") == (status, listed)


async def test_without_the_dashboard_a_browser_gets_the_list_too(served: Served) -> None:
    status, listed = await served.get("/", headers=BROWSER)
    assert status == 200
    assert "/stats" in listed["paths"]
    assert (await served.get("/dashboard/main.js"))[0] == 404


async def test_the_policy_allows_nothing_but_the_brokers_own_files(page: Served) -> None:
    async with page.session.get(page.url, headers=BROWSER) as answer:
        policy = dict(each.strip().split(" ", 1) for each in answer.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert "unsafe" not in str(policy)
    for each in FOLDER.glob("*.html"):
        text = each.read_text()
        assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=|//[a-z]", text), each


@pytest.mark.parametrize("name", sorted(DashboardFiles().names()))
async def test_a_file_is_asked_for_again_by_its_tag(page: Served, name: str) -> None:
    async with page.session.get(f"{page.url}/dashboard/{name}") as answer:
        assert answer.status == 200
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert await answer.read() == (FOLDER / name).read_bytes()
        tag = answer.headers["ETag"]
    async with page.session.get(f"{page.url}/dashboard/{name}", headers={"If-None-Match": tag}) as answer:
        assert (answer.status, await answer.read()) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/dashboard/../inspection.py", "/dashboard/%2e%2e/inspection.py", "/dashboard//etc/passwd", "/dashboard/",
             "/dashboard/..%2finspection.py", "/dashboard/main.js%00", "/dashboard/MAIN.JS"],
)  # fmt: skip
async def test_no_other_path_is_a_file(page: Served, path: str) -> None:
    from yarl import URL

    async with page.session.get(URL(page.url + path, encoded=True)) as answer:
        assert answer.status in (400, 404)


def test_the_pages_ask_nobody_else_and_make_no_markup() -> None:
    for each in FOLDER.glob("*.js"):
        text = each.read_text()
        for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert forbidden not in text, (each.name, forbidden)
        addresses = set(re.findall(r"https?://[^\s\"'`]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not addresses, (each.name, addresses)


def test_every_module_that_is_imported_is_there() -> None:
    names = DashboardFiles().names()
    for each in FOLDER.glob("*.js"):
        assert set(re.findall(r'from "\./([\w.-]+)"', each.read_text())) <= names, each.name


def test_files_of_other_kinds_are_not_served() -> None:
    assert {name[name.rindex("."):] for name in DashboardFiles().names()} <= set(dashboard_files.TYPES)
