"""The types that the package ships, as a user's type checker reads them: from the installed package."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("typed_program.py")


def mypy(program: Path) -> "subprocess.CompletedProcess[str]":
    """mypy in the program's folder, so that neither our settings nor our sources are what it finds."""
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(program.parent / "cache"), program.name]
    return subprocess.run(command, cwd=program.parent, capture_output=True, text=True, timeout=600)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return Path(shutil.copy(PROGRAM, tmp_path / "program.py"))


def test_an_ordinary_program_passes_mypy_strict(program: Path) -> None:
    done = mypy(program)
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_finds_a_connect_that_was_not_awaited(program: Path) -> None:
    program.write_text("import fanlight\n\nfanlight.connect().publish('t', b'')\n")
    done = mypy(program)
    assert done.returncode == 1
    assert '"Connecting" has no attribute "publish"' in done.stdout
