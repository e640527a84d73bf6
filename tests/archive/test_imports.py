"""What importing the archive does not import."""

import os
import subprocess
import sys
from pathlib import Path


def test_pandas_is_not_imported_which_takes_longer_than_all_else(tmp_path: Path) -> None:
    """The worker that plans a stream of Spark is a Python of its own, and so is a broker that archives."""
    (tmp_path / "pandas.py").write_text("print('imported')\nraise ImportError\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *(entry for entry in sys.path if entry)])
    found = subprocess.run(
        [sys.executable, "-c", "import fanlight_archive"],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout == ""
