"""What a test may need and a machine may lack; asked for here, so that every skip has a reason in words.

A test calls one of these first. On a machine without the thing it is skipped, and the summary of `make test`
counts it with the reason; under FANLIGHT_REQUIRE_ALL=1 that is a failure (see the root conftest.py).
"""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def command(name: str, *, package: str) -> str:
    """The path of the program `name`, or a skip that names the package which has it."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"needs the program {name} (package {package})")
    return path


def data(name: str, *, sample: Path | None = None) -> Path:
    """The folder of real input `name` ("market", "transit", "devices").

    It is looked for in FANLIGHT_DATA, then in ../shared/data beside the checkout. These files are too large
    to ship; where they are not, the test runs on the shipped `sample`, or is skipped if it has none.
    """
    for folder in (os.environ.get("FANLIGHT_DATA"), ROOT.parent / "shared" / "data"):
        if folder and (Path(folder) / name).is_dir():
            return Path(folder) / name
    if sample is not None:
        return sample
    pytest.skip(f"needs the data set {name} (set FANLIGHT_DATA to the folder that has it)")
