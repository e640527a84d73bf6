"""What is advised where something is not installed: it must be possible to do it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Distributions of ours, which are on no index: whoever installs them by these names may get a stranger's.
BY_NAME = re.compile(r"pip install[^\n|]*[ '\"](matchcore|fanlight(?:-\w+)?)(?![-\w./])")
PLACES = ("archive", "bench", "broker", "clients", "docs", "matchcore", "permissions", "pipeline", "research",
          "scripts", "README.md", "Dockerfile", "Makefile", "CONTRIBUTING.md")  # fmt: skip
KINDS = {".py", ".md", ".pyx", ".toml", ".sh", ""}


def run(tmp_path: Path, *arguments: str, missing: str = "", broken: str = "") -> subprocess.CompletedProcess[str]:
    """Python without a module, or with one that cannot be loaded."""
    site = "import sys\n" + "".join(f"sys.modules[{name!r}] = None\n" for name in missing.split())
    (tmp_path / "sitecustomize.py").write_text(site)
    if broken:
        (tmp_path / broken).mkdir()
        (tmp_path / broken / "__init__.py").write_text("raise ImportError('libarrow.so.1: no such file')")
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def test_nobody_is_told_to_install_a_distribution_that_is_on_no_index() -> None:
    assert BY_NAME.search("pip install 'fanlight-broker[archive]'")
    assert BY_NAME.search("`pip install fanlight`")
    assert not BY_NAME.search("pip install ./clients/python")
    found = []
    for place in PLACES:
        top = ROOT / place
        for path in [top] if top.is_file() else top.rglob("*"):
            if path.is_file() and path.suffix in KINDS and "node_modules" not in path.parts:
                text = path.read_text(encoding="utf-8", errors="replace")
                found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in BY_NAME.finditer(text)]
    assert found == []


def test_an_archive_without_pyarrow_says_how_to_get_it(tmp_path: Path) -> None:
    serve = "import sys; from fanlight_broker.cli import main; sys.exit(main(['serve', '--archive', sys.argv[1]]))"
    done = run(tmp_path, "-c", serve, str(tmp_path / "kept"), missing="pyarrow")
    assert done.returncode == 2
    told = done.stdout + done.stderr
    assert "make archive" in told
    assert "EXTRA=archive" in told
    assert "Traceback" not in told
    assert "archive:" in (ROOT / "Makefile").read_text()
    assert "ARG EXTRA" in (ROOT / "Dockerfile").read_text()


def test_a_pyarrow_that_cannot_be_loaded_is_not_called_absent(tmp_path: Path) -> None:
    serve = "import sys; from fanlight_broker.cli import main; sys.exit(main(['serve', '--archive', sys.argv[1]]))"
    done = run(tmp_path, "-c", serve, str(tmp_path / "kept"), broken="pyarrow")
    assert done.returncode == 2
    assert "libarrow.so.1: no such file" in done.stdout + done.stderr
    assert "make archive" not in done.stdout + done.stderr


@pytest.mark.parametrize("job", ["bars", "compact", "workload"])
def test_a_job_without_pyspark_says_what_to_install(tmp_path: Path, job: str) -> None:
    done = run(tmp_path, "-m", f"fanlight_spark.jobs.{job}", "--help", missing="pyspark pandas")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"python -m fanlight_spark.jobs.{job}: this needs pyspark, pandas, not installed")
    assert "`make spark`" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_list_of_jobs_needs_no_pyspark(tmp_path: Path) -> None:
    done = run(tmp_path, "-m", "fanlight_spark.jobs", missing="pyspark pandas pyarrow")
    assert done.returncode == 0
    assert "traffic" in done.stdout
