"""The site of the documentation: it can be made, has every page, finds words, and takes nothing from the network."""

import json
import re
import sys

from scripts.build_site import PARTS, SITE, pages
from tests.distributions import ROOT, run


def test_the_site_has_every_page_and_its_search_finds_them() -> None:
    run(sys.executable, ROOT / "scripts" / "build_site.py")  # fails at a link that leads nowhere
    found = json.loads((SITE / "search.json").read_text(encoding="utf-8"))["items"]
    places = {each["location"].partition("#")[0] for each in found}
    for page in pages():
        name = re.sub(r"(?:^|(?<=/))README$", "index", page.with_suffix("").as_posix())
        assert f"{name}.html" in places, page
    assert any("retained message" in each["text"].lower() for each in found)
    text = (SITE / "docs" / "mqtt.html").read_text(encoding="utf-8")
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"?https?://", text)


def test_every_page_of_the_navigation_is_there() -> None:
    there = {page.as_posix() for page in pages()}
    assert not [page for part in PARTS.values() for page in part if page not in there]
