"""What all jobs have in common: they are listed, and each says how it is used."""

import argparse
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest

from fanlight_archive import MESSAGE, Writer
from fanlight_bench.demo import quotes
from fanlight_spark.jobs.__main__ import jobs
from tests import require
from tests.archive.messages import batch

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLDER = Path(__file__).resolve().parents[2] / "pipeline" / "fanlight_spark" / "jobs"


def test_the_list_has_every_module_that_can_be_run() -> None:
    runnable = {path.stem for path in FOLDER.glob("*.py") if 'if __name__ == "__main__":' in path.read_text()}
    assert {name for name, _ in jobs()} == runnable - {"__main__"}


def test_the_list_is_printed_without_spark() -> None:
    # -S and a path of our own: no package is there but the project.
    command = [sys.executable, "-S", "-m", "fanlight_spark.jobs"]
    done = subprocess.run(command, cwd=FOLDER.parents[1], capture_output=True, text=True, check=True, timeout=60)
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert listed == [name for name, _ in jobs()]


COMMAND = re.compile(r"python -m fanlight_spark\.jobs\.(\w+) ((?:\\\n|[^\n|`])*)")
COMMANDS = sorted({found for page in DOCS.glob("*.md") for found in COMMAND.findall(page.read_text())})


@pytest.mark.parametrize(("name", "words"), COMMANDS, ids=str)
def test_a_command_of_the_documents_is_one(name: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as its arguments go; nothing is run."""
    require.spark()
    from fanlight_spark.jobs import command

    asked: list[argparse.Namespace] = []

    def run(parser: argparse.ArgumentParser, work: Any, arguments: Any, spark: Any = None, **_: Any) -> int:
        if "--help" not in arguments:
            asked.append(parser.parse_args(arguments))
        return 0

    def take(options: argparse.Namespace) -> int:
        asked.append(options)
        return 0

    monkeypatch.setattr(command, "run", run)
    module = importlib.import_module(f"fanlight_spark.jobs.{name}")
    if name == "infer":  # which needs no Spark, and has no `command`
        monkeypatch.setattr(module, "_work", take)
    given = shlex.split(words.replace("\\\n", " "), comments=True)
    assert module.main(given) == 0
    assert asked or "--help" in given


def block(page: str, begins: str) -> str:
    """The fenced block of a page whose text begins so."""
    (found,) = [text for text in re.findall(r"```\w*\n(.*?)```", page, re.DOTALL) if text.startswith(begins)]
    return str(found)


def test_what_docs_pipeline_jobs_shows_of_the_demo_is_what_comes_out(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fanlight_spark.jobs import bars, traffic

    page = (DOCS / "pipeline-jobs.md").read_text()
    published = list(quotes.read())
    rows = batch(0, len(published)).to_pydict()
    rows["timestamp"] = list(range(len(published)))  # all within a second, as in the demo: few windows
    rows["topic"] = [one.topic for one in published]
    rows["syntax"] = [one.syntax for one in published]
    rows["value"] = [one.payload for one in published]
    writer = Writer(tmp_path / "archive")
    for part in pa.Table.from_pydict(rows, schema=MESSAGE).to_batches(max_chunksize=4096):
        writer.append(part)
    writer.close()
    for begins, file in (("make demo", "subscriptions.jsonl"), ("cat > decoders.toml", "decoders.toml")):
        (tmp_path / file).write_text(block(page, begins).partition("<<'END'\n")[2].partition("END\n")[0])
    names = {"archive", "subscriptions.jsonl", "decoders.toml", "traffic", "bars"}
    for job, begins in ((traffic, "+-----+----"), (bars, "+------+----")):
        (line,) = re.findall(rf"^python -m {job.__name__} (archive (?!.*--stream).*)$", page, re.MULTILINE)
        here = [str(tmp_path / word) if word in names else word for word in shlex.split(line)]
        assert job.main(here, spark) == 0
        assert capsys.readouterr().out.replace(f"{tmp_path}/", "") == block(page, begins)
