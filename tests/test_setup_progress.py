"""What `make setup` shows of a build: scripts/pip_progress.py, with a real pip and a small project."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.require import ROOT

PROJECT = """\
[build-system]
requires = ["setuptools", "cython"]
build-backend = "setuptools.build_meta"
[project]
name = "two-modules"
version = "0"
[tool.setuptools]
packages = ["two"]
[[tool.setuptools.ext-modules]]
name = "two.first"
sources = ["two/first.pyx"]
[[tool.setuptools.ext-modules]]
name = "two.second"
sources = ["two/second.pyx"]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "__init__.py").touch()
    (tmp_path / "two" / "first.pyx").write_text("first = 1\n")
    (tmp_path / "two" / "second.pyx").write_text("second = 2\n")
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    return tmp_path


def install(project: Path) -> "subprocess.CompletedProcess[str]":
    script = str(ROOT / "scripts" / "pip_progress.py")
    flags = ["--no-index", "--no-build-isolation", "--no-deps", "--target", str(project / "installed")]
    return subprocess.run(
        [sys.executable, script, "install", *flags, "."], cwd=project, capture_output=True, text=True, timeout=600
    )


def test_a_build_says_which_module_of_how_many_and_nothing_else(project: Path) -> None:
    done = install(project)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "make: building 1 of 2: two.first\nmake: building 2 of 2: two.second\n"
    assert done.stderr == ""
    assert list((project / "installed" / "two").glob("second*.so"))


def test_a_build_that_fails_shows_the_compilers_words(project: Path) -> None:
    (project / "two" / "second.pyx").write_text("def unfinished(:\n")
    done = install(project)
    assert done.returncode != 0
    assert "def unfinished(:" in done.stderr
    assert done.stderr.endswith("above are its last lines\n")
