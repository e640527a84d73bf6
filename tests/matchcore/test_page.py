"""docs/matchcore.md is true: its transcripts run, it names all there is, and the library stands by itself."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

import matchcore

PAGE = Path(__file__).resolve().parents[2] / "docs" / "matchcore.md"
TRANSCRIPTS = re.findall(r"^```pycon\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_transcripts_of_the_page_are_what_is_printed() -> None:
    together = doctest.DocTestParser().get_doctest("".join(TRANSCRIPTS), {}, PAGE.name, str(PAGE), 0)
    assert len(together.examples) > 25
    told: list[str] = []
    doctest.DocTestRunner(verbose=False).run(together, out=told.append)
    assert not told, "".join(told)


def test_the_page_names_everything_that_is_public() -> None:
    text = PAGE.read_text(encoding="utf-8")
    wanted = set(matchcore.__all__)
    for owner in (matchcore.FilterIndex, matchcore.FrozenIndex, matchcore.NameIndex):
        wanted |= {name for name in dir(owner) if not name.startswith("_")}
    assert not {name for name in wanted if not re.search(rf"\b{name}\b", text)}


@pytest.mark.parametrize("way", ["import matchcore", "import matchcore.reference"])
def test_it_loads_nothing_of_the_broker_nor_of_what_that_needs(way: str) -> None:
    program = f"{way}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert "matchcore" in loaded
    assert not loaded & {
        "broker", "bench", "fanlight", "uvloop", "asyncio", "aiohttp", "msgpack", "argon2",
        "prometheus_client", "annotated_types", "typing_extensions", "hyperscan", "paho", "pyroaring", "pyarrow",
    }  # fmt: skip
