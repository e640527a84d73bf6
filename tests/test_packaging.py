"""Both distributions, built and installed for real: what a stranger gets from a wheel or a source archive.

The sources are copied aside, made into source distributions, those unpacked and made into wheels, and those
installed into empty environments. Nothing is downloaded: the libraries they need are linked in from the
running environment, each environment getting only what its distribution declares, so that a missing or a
needless dependency shows.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SITE_PACKAGES = Path(sysconfig.get_path("platlib"))
IGNORED = shutil.ignore_patterns(
    ".venv*", ".git", "build", "dist", "results", "__pycache__", "*.egg-info", "*.so", ".*_cache"
)
SDK = "clients/python"


@dataclass(frozen=True, slots=True)
class Distributions:
    """The paths of what was built."""

    broker_archive: Path
    sdk_archive: Path
    broker_wheel: Path
    sdk_wheel: Path


def run(*command: str | Path, path: Path | None = None) -> str:
    """The output of a command that must succeed; `path` is where it finds further Python packages.

    It runs far from the checkout, which Python would otherwise import from.
    """
    ours = ("PYTHON", "FANLIGHT_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    environment |= {"PYTHONPATH": str(path)} if path else {}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=tempfile.gettempdir(), env=environment, capture_output=True, text=True, check=False, timeout=400,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def one(folder: Path, pattern: str) -> Path:
    """The only file in `folder` of that name."""
    (found,) = folder.glob(pattern)
    return found


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """Both source distributions, and the wheels built from them."""
    work = tmp_path_factory.mktemp("packaging")
    shutil.copytree(ROOT, work / "checkout", ignore=IGNORED)
    for source in (work / "checkout").rglob("*.pyx"):
        source.with_suffix(".c").unlink(missing_ok=True)  # translated by a build in the checkout

    archives, wheels = work / "archives", work / "wheels"
    build = (sys.executable, "-m", "build", "--no-isolation")
    for project in (work / "checkout", work / "checkout" / SDK):
        run(*build, "--sdist", "--outdir", archives, project)
    broker, sdk = one(archives, "fanlight_broker-*.tar.gz"), one(archives, "fanlight-*.tar.gz")
    for archive in (broker, sdk):
        with tarfile.open(archive) as opened:
            opened.extractall(work / "unpacked", filter="data")
        unpacked = work / "unpacked" / archive.name.removesuffix(".tar.gz")
        run(*build, "--wheel", "--outdir", wheels, unpacked)
    return Distributions(broker, sdk, one(wheels, "fanlight_broker-*.whl"), one(wheels, "fanlight-*.whl"))


def names_in(archive: Path) -> set[str]:
    """The files of a source distribution, without the folder they are all in."""
    with tarfile.open(archive) as opened:
        return {member.name.partition("/")[2] for member in opened if member.isfile()}


def tracked(*suffixes: str) -> set[str]:
    """Our own files with these endings, as paths in the checkout."""
    folders = ("matchcore", "broker", "bench", "archive", "pipeline", "docs", "tests", "scripts")
    paths = {path for folder in folders for path in (ROOT / folder).rglob("*") if path.name.endswith(suffixes)}
    return {path.relative_to(ROOT).as_posix() for path in paths if "results" not in path.parts}


def test_the_source_archive_has_all_it_takes_to_build_test_and_read(distributions: Distributions) -> None:
    names = names_in(distributions.broker_archive)
    wanted = tracked(".py", ".pyx", ".pxd", ".pyi", "py.typed", ".md", ".json", ".sh")
    assert not wanted - names
    assert {"LICENSE", "README.md", "Makefile", "Dockerfile", "constraints.txt", "conftest.py"} <= names
    assert {f"{SDK}/pyproject.toml", f"{SDK}/src/fanlight/__init__.py", ".ci/run"} <= names


def test_the_source_archive_has_nothing_that_was_built(distributions: Distributions) -> None:
    for archive in (distributions.broker_archive, distributions.sdk_archive):
        assert not [name for name in names_in(archive) if name.endswith((".so", ".pyc"))]
    translated = {name.removesuffix("pyx") + "c" for name in tracked(".pyx")}
    assert not translated & names_in(distributions.broker_archive)


def test_the_wheels_are_typed_and_carry_their_licence(distributions: Distributions) -> None:
    for wheel in (distributions.broker_wheel, distributions.sdk_wheel):
        names = set(zipfile.ZipFile(wheel).namelist())
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
        tops = {name.split("/")[0] for name in names if ".dist-info" not in name}
        sdk = wheel == distributions.sdk_wheel
        assert tops == ({"fanlight"} if sdk else {"broker", "matchcore", "bench", "archive", "pipeline"})
        typed = {top for top in tops if f"{top}/py.typed" in names}
        assert typed >= tops - {"bench"}
        assert not [name for name in names if name.endswith((".c", ".pyc"))]


def test_the_broker_wheel_has_every_compiled_module_with_its_face(distributions: Distributions) -> None:
    names = set(zipfile.ZipFile(distributions.broker_wheel).namelist())
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    for source in tracked(".pyx"):
        assert source.removesuffix(".pyx") + suffix in names
        assert source.removesuffix("pyx") + "pyi" in names
    # Who writes Cython against matchcore needs the declarations.
    assert tracked(".pxd") <= names


def test_the_broker_wheel_has_the_data_of_the_demonstration_with_its_licence(
    distributions: Distributions,
) -> None:
    names = set(zipfile.ZipFile(distributions.broker_wheel).namelist())
    assert {"bench/data/sp500_sample.csv.gz", "bench/data/LICENSE-sp500.txt"} <= names


def test_the_broker_wheel_has_the_scenarios_of_the_load_harness_and_its_verb(distributions: Distributions) -> None:
    wheel = zipfile.ZipFile(distributions.broker_wheel)
    assert {path for path in tracked(".toml") if path.startswith("bench/load/")} <= set(wheel.namelist())
    (entries,) = (name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt"))
    assert "[fanlight.commands]\nbench = bench.__main__:main" in wheel.read(entries).decode()


def test_what_the_image_is_built_from_is_not_ignored() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    wanted = {source for sources in copied for source in sources.split()}
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = [line.removeprefix("!") for line in ignored if line.startswith("!")]
    assert wanted >= {"matchcore", "archive", "pyproject.toml"}
    assert not [path for path in wanted if not any(f"{path}/".startswith(f"{each}/") for each in let_in)]


def environment(folder: Path, wheel: Path, libraries: set[str]) -> tuple[Path, Path]:
    """An environment with one wheel: (its bin folder, a folder with links to `libraries`)."""
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--no-index", "--no-deps", "--quiet", wheel)
    links = folder / "libraries"
    links.mkdir()
    for library in libraries:
        for found in [*SITE_PACKAGES.glob(f"{library}"), *SITE_PACKAGES.glob(f"{library}.*")]:
            (links / found.name).symlink_to(found)
    return python.parent, links


def test_matchcore_works_with_numpy_and_nothing_else(distributions: Distributions, tmp_path: Path) -> None:
    bin, links = environment(tmp_path, distributions.broker_wheel, {"numpy"})
    program = """
import sys, matchcore
index = matchcore.FilterIndex()
index.insert("forex.*", 7, syntax="amqp")
assert index.match("forex/eur", syntax="mqtt") == (7,)
offsets, ids = index.match_many(["forex.eur", "x"], syntax="amqp")
assert (offsets.tolist(), ids.tolist()) == ([0, 1, 1], [7])
loaded = {name.partition(".")[0] for name in sys.modules} - {"matchcore", "numpy", *sys.stdlib_module_names}
print(sorted(name for name in loaded if not name.startswith(("_", "cython"))))
"""
    assert run(bin / "python", "-c", program, path=links).strip() == "[]"


def test_the_sdk_and_its_command_work_with_msgpack_and_nothing_else(
    distributions: Distributions, tmp_path: Path
) -> None:
    bin, links = environment(tmp_path, distributions.sdk_wheel, {"msgpack"})
    assert "connect" in run(bin / "python", "-c", "import fanlight; print(dir(fanlight))", path=links)
    assert "usage: fanlight" in run(bin / "fanlight", "--help", path=links)


def test_the_broker_is_installed_with_its_command(distributions: Distributions, tmp_path: Path) -> None:
    bin, _ = environment(tmp_path, distributions.broker_wheel, set())
    # All libraries of the running environment, but not what is installed there by reference: .pth files are
    # read in an environment's own folder only.
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"fanlightd {version}" in run(bin / "fanlightd", "version", path=SITE_PACKAGES)
    assert "native_port" in run(bin / "fanlightd", "check-config", path=SITE_PACKAGES)
    where = run(bin / "python", "-c", "import broker.app; print(broker.app.__file__)", path=SITE_PACKAGES)
    assert Path(where.strip()).is_relative_to(tmp_path)


def test_the_constraints_pin_everything_and_name_no_host() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(line.count("==") == 1 and not set(line) & set(" :/;@") for line in pins)

    declared: list[str] = []
    for folder in (ROOT, ROOT / SDK):
        table = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        groups = [
            table["project"]["dependencies"],
            *table["project"].get("optional-dependencies", {}).values(),
            *table.get("dependency-groups", {}).values(),
            table["build-system"]["requires"],
        ]
        declared += [requirement for group in groups for requirement in group]
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in pins}
    wanted = {requirement.split(">=")[0].split("[")[0].strip().lower() for requirement in declared}
    assert not wanted - pinned
