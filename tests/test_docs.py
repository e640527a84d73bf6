"""The documentation is true: its links lead somewhere, its commands and names exist, its examples run.

A fenced block below the line `<!-- run -->` is executed, Python and shell alike, against a broker: FANLIGHT_URL
names it, and the default addresses are replaced by its own. Every other Python block must at least compile.
Commands are looked for in code only, so prose may say "make sure".
"""

import ast
import contextlib
import functools
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pytest

import fanlight.cli
import fanlight_broker.cli
from fanlight import DEFAULT_URL
from fanlight_bench.launch import Broker
from fanlight_broker.config import keys
from fanlight_broker.config.load import OTHER_VARIABLES

BUILD_VARIABLES = {"FANLIGHT_DEBUG"}  # of broker/setup.py
PICTURES = (".svg", ".png")
DEFAULT_MQTT = "//127.0.0.1:1883"
ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
READMES = [*ROOT.glob("*/README.md"), *ROOT.glob("*/*/README.md")]
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *READMES})

MAINS = {"fanlight": fanlight.cli.main, "fanlightd": fanlight_broker.cli.main}
FENCE = re.compile(r"^(?P<mark><!-- run -->\n+)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!\!)\[[^\]\n]*\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    runs: bool


def name(value: Path | Block) -> str:
    """What pytest calls a case."""
    if isinstance(value, Block):
        return f"{name(value.page)}:{value.line}"
    return value.relative_to(ROOT).as_posix()


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("language")) + 1
        yield Block(page, line, match["language"], match["text"], match["mark"] is not None)


BLOCKS = [block for page in PAGES for block in blocks(page)]


def code(page: Path) -> str:
    """All that a page sets in code: its fenced blocks, and the spans in its prose."""
    text = page.read_text(encoding="utf-8")
    prose = FENCE.sub("", text)
    spans = [span.replace("\n", " ") for span in re.findall(r"`([^`]+)`", prose)]
    return "\n".join([*(block.text.replace("\\\n", " ") for block in blocks(page)), *spans])


def anchors(page: Path) -> set[str]:
    """The fragments a page's headings can be linked by, as GitHub makes them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+\s+(.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"\w+:", link):
            continue  # the network is not asked
        path, _, fragment = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name(page)} links to {link}"
        assert target.is_relative_to(ROOT)
        if fragment:
            assert fragment in anchors(target), f"{name(page)} links to {link}; its headings: {anchors(target)}"


def test_every_page_of_docs_can_be_found_from_its_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / link).resolve() for link in LINK.findall(index)}
    pages = [page for page in (ROOT / "docs").glob("*.*") if page.name != "README.md" and page.suffix not in PICTURES]
    assert not [name(page) for page in pages if page not in linked]


def test_every_picture_is_shown_on_a_page() -> None:
    shown = {
        (page.parent / picture).resolve()
        for page in PAGES
        for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    }
    pictures = [path for path in (ROOT / "docs").glob("*.*") if path.suffix in PICTURES]
    assert not [name(picture) for picture in pictures if picture not in shown]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][\w-]*):(?!=)", MAKEFILE, re.MULTILINE))
    for line in code(page).splitlines():
        for words in re.findall(r"(?:^|[;&|$(] *)make((?: +[\w=\"./:-]+)*)", line.split("#")[0]):
            for word in words.split():
                assert "=" in word or word in targets, f"{name(page)}: make {word}"
                if "=" in word:
                    break  # what follows a variable may belong to its value


def test_make_help_names_every_target_one_would_type() -> None:
    (line,) = re.findall(r"^\.PHONY: (help .+)$", MAKEFILE, re.MULTILINE)
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    assert not {target for target in line.split() if target != "help" and f"make {target}" not in shown}


COMMAND = re.compile(r"(?:^|[\s/;|&$(])(fanlightd?|python -m fanlight_bench(?:\.\w+)?)((?: +(?!\|)[^\s|;&)]+)*)")


@functools.cache
def help_of(program: str, subcommand: str) -> str | None:
    """What `program subcommand --help` prints, or None if there is no such subcommand."""
    words = [*subcommand.split(), "--help"]
    if program in MAINS:  # in this process: hundreds are asked, and each start takes half a second
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
            try:
                status = MAINS[program](words)
            except SystemExit as error:
                status = error.code  # type: ignore[assignment]
        return out.getvalue() if not status else None
    words = [sys.executable, *program.split()[1:], *words]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout if done.returncode == 0 else None


def invocations(page: Path) -> Iterator[tuple[str, str, list[str]]]:
    """(program, subcommand, flags) of every command line of ours on a page."""
    for line in code(page).splitlines():
        for program, rest in COMMAND.findall(line):
            words = rest.split()
            if not words:
                continue  # the program's name alone
            if program == "fanlight" and words[0] == "bench":
                program, words = "python -m fanlight_bench", words[1:]  # which it hands over to
                if not words:
                    continue
            subcommand = words[0] if re.fullmatch(r"[a-z][a-z-]*", words[0]) else ""
            nested = subcommand in ("queue", "rules", "permissions")
            if nested and len(words) > 1 and words[1].isalpha() and words[1].islower():
                subcommand = f"{subcommand} {words[1]}"  # a verb with verbs of its own
            yield program, subcommand, [word.split("=")[0] for word in words if re.match(r"--\w", word)]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_and_their_flags_exist(page: Path) -> None:
    for program, subcommand, flags in invocations(page):
        if program == "fanlight" and subcommand in {"fanlight", "passwd", "check-config"}:
            continue  # `docker run fanlight passwd`: the image of that name, whose program is fanlightd
        shown = help_of(program, subcommand)
        assert shown is not None, f"{name(page)}: {program} {subcommand} does not exist"
        for flag in flags:
            assert re.search(rf"{flag}(?![\w-])", shown), f"{name(page)}: {program} {subcommand} {flag}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_environment_variables_exist(page: Path) -> None:
    known = {key.variable for key in keys().values()} | set(OTHER_VARIABLES) | BUILD_VARIABLES
    for variable in re.findall(r"\bFANLIGHT_[A-Z_]+\b", page.read_text(encoding="utf-8")):
        assert variable in known or variable.endswith("_"), f"{name(page)} names {variable}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_paths_of_the_project_exist(page: Path) -> None:
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    folders = "matchcore|broker|bench|archive|pipeline|research|clients|docs|tests|scripts"
    for path in re.findall(rf"`((?:{folders})/[\w./-]*)`", prose):
        assert (ROOT / path).exists(), f"{name(page)} names {path}"


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "python"], ids=name)
def test_python_examples_compile(block: Block) -> None:
    compile(block.text, name(block), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_there_are_examples_that_run() -> None:
    assert {block.language for block in BLOCKS if block.runs} >= {"python", "sh"}


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.runs], ids=name)
def test_examples_run(block: Block, module_broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / f"example.{block.language}"
    text = block.text.replace(DEFAULT_URL, module_broker.url)
    text = text.replace(DEFAULT_MQTT, f"//127.0.0.1:{module_broker.mqtt_port}")
    file.write_text(text, encoding="utf-8")
    interpreter = {"python": [sys.executable, "-W", "error"], "sh": ["sh", "-eu"]}[block.language]
    environment = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "FANLIGHT_URL": module_broker.url,
        "FANLIGHT_HTTP_URL": module_broker.http_url,
    }
    done = subprocess.run(
        [*interpreter, str(file)], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
