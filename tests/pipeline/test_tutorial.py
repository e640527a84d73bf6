"""The tutorial of docs/pipeline.md: its commands, in their order, print what stands below them.

The jobs run in the Spark of the tests, called as their command lines call them; `make spark` is what made this
environment, and `make demo` is called as the Makefile calls it. That Spark was started elsewhere, so that the paths of
the page, below build/, are made absolute.
"""

import contextlib
import importlib
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.killed import environment
from tests.pipeline.notebooks import run_cells

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "pipeline.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXIT_CODES = {"fanlight_spark.jobs.permissions": 1}  # it found what it was to find
HEREDOC = re.compile(r"^cat > (\S+) <<'END'\n(.*?)^END$\n", re.MULTILINE | re.DOTALL)


def tutorial() -> list[tuple[str, str]]:
    """(language, text) of the blocks of the tutorial."""
    text = PAGE.read_text(encoding="utf-8").split("## From prices to a chart\n")[1].split("\n## ")[0]
    return BLOCK.findall(text)


def lines(text: str) -> Iterator[str]:
    """Those that say something, without the space around them."""
    return (line.strip() for line in text.splitlines() if line.strip())


def module_of(name: str) -> Callable[[list[str], Any], int]:
    """What runs a module's command line; those that need no Spark are not given one."""
    if name == "fanlight_spark.lakehouse":
        main = importlib.import_module(f"{name}.command").main
        return lambda words, _: main(words)
    found: Callable[[list[str], Any], int] = importlib.import_module(name).main
    return found


def shell(text: str, folder: Path, spark: Any) -> str:
    """What the commands of a block print."""
    for name, content in HEREDOC.findall(text):
        Path(name).write_text(content, encoding="utf-8")
    said = ""
    for line in lines(HEREDOC.sub("", text)):
        words = shlex.split(line)
        if words[:2] == ["make", "demo"]:
            (arguments,) = words[2:]
            words = shlex.split(arguments.removeprefix("ARGS="))
            command = [sys.executable, "-m", "fanlight_bench.demo", "--plain", *words]
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, check=False, timeout=120, env=environment()
            )
            assert done.returncode == 0, done.stdout + done.stderr
            said += done.stdout
        elif words[:2] == ["python", "-m"]:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                assert module_of(words[2])(words[3:], spark) == EXIT_CODES.get(words[2], 0)
            said += out.getvalue()
        else:
            assert line in ("make spark", 'export PATH="$PWD/.venv/bin:$PATH"'), line
    return said


@pytest.mark.usefixtures("as_shipped")
def test_the_tutorial_prints_what_it_shows(spark: Any, tmp_path: Path) -> None:
    said, shown = "", 0
    (tmp_path / "build").mkdir()
    for language, text in tutorial():
        text = text.replace("build/", f"{tmp_path}/build/")
        if language == "sh":
            said = shell(text, tmp_path, spark)
        elif language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(text, str(PAGE), "exec"), {})
            said = out.getvalue()
        else:
            assert list(lines(text)) == [line for line in lines(said) if line in set(lines(text))], said
            shown += 1
    assert shown >= 9
    assert {"bars", "traffic", "audience", "messages", "live"} <= {path.name for path in (tmp_path / "build").iterdir()}

    # The first notebook reads the same archive; what it finds is what the page shows.
    named = run_cells("market.ipynb", tmp_path / "build")
    assert [tuple(row)[:2] for row in named["dear"].collect()] == [("AMZN", 24), ("GOOG", 3), ("GOOGL", 4)]
    assert [row.close for row in named["rows"]] == [175.0, 177.09, 178.46, 171.51, 160.5, 159.54]
    assert named["got"] == {1: 2964, 2: 26, 3: 26}
    assert '<figure class="data">' in (tmp_path / "build" / "notebook.html").read_text(encoding="utf-8")
