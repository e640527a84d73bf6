"""`python -m fanlight_spark.pack`: an archive in which a Python finds the packages, compiled modules among them."""

import hashlib
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from fanlight_spark.pack import main

LARGE = ("numpy", "pandas", "pyarrow", "protobuf", "fastavro")  # 80 MB: that these are found, too, takes no test


def pack(out: Path, *more: str) -> Path:
    without = [word for name in LARGE for word in ("--without", name)]
    assert main([str(out), "--python", sys.executable, *without, *more]) == 0
    return out


def test_a_python_finds_what_is_packed_before_all_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = pack(tmp_path / "environment.tar.gz")
    assert "matchcore" in capsys.readouterr().out
    with tarfile.open(archive) as packed:
        assert not [name for name in packed.getnames() if name.endswith((".pyx", ".c", ".pyc")) or "pyspark" in name]
        packed.extractall(tmp_path / "environment", filter="data")
    program = "import matchcore.frozen as one, fanlight_spark as other, fanlight, fanlight_permissions as third;" \
        "from importlib.metadata import version;" \
        "print(one.__file__, other.__file__, fanlight.__file__, third.__file__, version('fanlight-spark'))"  # fmt: skip
    done = subprocess.run(
        [tmp_path / "environment" / "bin" / "python", "-c", program], capture_output=True, text=True, check=True,
        cwd=tmp_path,
    )  # fmt: skip
    *places, version = done.stdout.split()
    assert [Path(place).relative_to(tmp_path / "environment" / "lib").parts[0] for place in places] == [
        "matchcore", "fanlight_spark", "fanlight", "fanlight_permissions",
    ]  # fmt: skip
    assert version


def test_the_same_packages_are_the_same_bytes(tmp_path: Path) -> None:
    one, other = (pack(tmp_path / name).read_bytes() for name in ("one", "other"))
    assert hashlib.sha256(one).digest() == hashlib.sha256(other).digest()


def test_mistakes_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nowhere" / "file")]) == 2
    assert "No such file" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([str(tmp_path / "file"), "--python", "python; true"])
