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
        assert await answer.read() == (FOLDER / name).read_bytes().replace(b"{sockets}", b"")
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
        assert set(re.findall(r'from "\./([\w./-]+)"', each.read_text())) <= names, each.name


def test_files_of_other_kinds_are_not_served() -> None:
    assert {name[name.rindex("."):] for name in DashboardFiles().names()} <= set(dashboard_files.TYPES)


async def test_the_page_may_connect_to_the_brokers_own_ports_at_the_name_it_was_asked_by(serve: Serve) -> None:
    page = await serve(dashboard=True, sockets=lambda: {"ws": 7425, "wss": 7426})
    for host, allowed in (
        ("localhost:7421", "'self' ws://localhost:7425 wss://localhost:7426"),
        ("example.org", "'self' ws://example.org:7425 wss://example.org:7426"),
        ("[::1]:7421", "'self'"), ("a b; script-src *", "'self'"),
    ):
        async with page.session.get(page.url, headers={**BROWSER, "Host": host}) as answer:
            policy = dict(each.strip().split(" ", 1) for each in answer.headers["Content-Security-Policy"].split(";"))
            assert policy["connect-src"] == allowed
            assert 'content="ws:7425 wss:7426"' in await answer.text()
            assert policy["script-src"] == "'self'"


def contrast(one: str, other: str) -> float:
    """Of two colours, by WCAG 2.2."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [":root", ':root[data-theme="dark"]'])
def test_text_can_be_read_on_every_ground(theme: str) -> None:
    """4.5 : 1, WCAG 2.2, 1.4.3."""
    style = (FOLDER / "dashboard.css").read_text()
    block = style[style.index(f"{theme} {{") :].partition("}")[0]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})\b", block))
    for text, grounds in {
        "text": ("page", "card", "hover", "accent-soft"), "muted": ("page", "card"), "accent": ("card", "accent-soft"),
        "bad": ("card", "bad-soft"), "warn": ("card", "warn-soft"), "good": ("card",),
        "card": ("accent", "bad", "text"),
    }.items():
        for ground in grounds:
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
