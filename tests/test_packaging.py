"""All distributions, built and installed for real: what a stranger gets from a wheel or a source archive.

The sources are copied aside, made into source distributions, those unpacked and made into wheels, and those
installed into empty environments. Nothing is downloaded: the libraries they need are linked in from the
running environment, each environment getting only what its distribution declares, so that a missing or a
needless dependency shows.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from scripts.dependencies import needed
from tests.distributions import OURS, ROOT, Built, built_once, ours, run

SITE_PACKAGES = Path(sysconfig.get_path("platlib"))
RESEARCH = ("research/matchers", "research/content")


@pytest.fixture(scope="module")
def built(shared_folder: Path) -> Built:
    """All of ours."""
    return built_once(shared_folder / "distributions")


def names_in(archive: Path) -> set[str]:
    """The files of a source distribution, without the folder they are all in; or of a wheel."""
    if archive.suffix == ".whl":
        return set(zipfile.ZipFile(archive).namelist())
    with tarfile.open(archive) as opened:
        return {member.name.partition("/")[2] for member in opened if member.isfile()}


def project(folder: str) -> dict[str, Any]:
    """The pyproject.toml of a distribution, or of the root."""
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", OURS)
def test_a_source_distribution_has_what_a_build_takes_and_nothing_that_was_built(built: Built, name: str) -> None:
    folder, package = OURS[name]
    names = names_in(built.archives[name])
    inside = "src/" if folder == "clients/python" else ""
    wanted = {inside + path for path in ours(folder, package, ".py", ".pyx", ".pxd", ".pxi", ".pyi", "py.typed")}
    assert not wanted - names
    assert {"LICENSE", "README.md", "pyproject.toml"} <= names
    assert not [path for path in names if path.endswith((".so", ".c", ".pyc"))]
    if ours(folder, package, ".pyx"):
        assert "setup.py" in names


@pytest.mark.parametrize("name", OURS)
def test_a_wheel_installs_one_package_typed_and_with_its_licence(built: Built, name: str) -> None:
    folder, package = OURS[name]
    names = names_in(built.wheels[name])
    assert {path.split("/")[0] for path in names if ".dist-info" not in path} == {package}
    assert any(path.endswith(".dist-info/licenses/LICENSE") for path in names)
    assert not [path for path in names if path.endswith((".c", ".pyc"))]
    assert ours(folder, package, ".py", ".pyi", "py.typed") <= names
    assert f"{package}/py.typed" in names or package == "fanlight_bench"
    # Whoever writes Cython against matchcore needs the declarations; every compiled module is there with its face.
    assert ours(folder, package, ".pxd") <= names
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    for source in ours(folder, package, ".pyx"):
        assert source.removesuffix(".pyx") + suffix in names
        assert source.removesuffix("pyx") + "pyi" in names


def test_the_wheel_of_the_load_generator_has_its_scenarios_its_data_and_its_verb(built: Built) -> None:
    wheel = zipfile.ZipFile(built.wheels["fanlight-bench"])
    names = set(wheel.namelist())
    assert {f"fanlight_bench/data/{name}" for name in ("sp500_sample.csv.gz", "LICENSE-sp500.txt")} <= names
    assert ours("bench", "fanlight_bench/load", ".toml") <= names
    (entries,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
    assert "[fanlight.commands]\nbench = fanlight_bench.__main__:main" in wheel.read(entries).decode()


def test_the_wheel_of_the_pipeline_has_the_settings_of_sparks_log(built: Built) -> None:
    assert "fanlight_spark/log4j2.properties" in names_in(built.wheels["fanlight-spark"])


def test_every_copy_of_the_version_is_that_of_the_file_version() -> None:
    assert run(sys.executable, ROOT / "scripts" / "set_version.py", "--check") == ""


def test_what_the_images_are_built_from_is_not_ignored() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE)
    wanted = {source for sources in copied for source in sources.split()}
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = [line.removeprefix("!") for line in ignored if line.startswith("!")]
    assert wanted >= {folder for folder, _ in OURS.values()}
    assert not [path for path in wanted if not any(f"{path}/".startswith(f"{each}/") for each in let_in)]


def test_the_image_of_the_broker_has_neither_the_load_generator_nor_the_pipeline() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    stages = dict(re.findall(r"^FROM \S+ AS (\S+)\n(.*?)(?=^FROM|\Z)", text, re.MULTILINE | re.DOTALL))
    assert "COPY --from=build /opt/fanlight" in stages["broker"]
    assert not re.findall(r"^COPY (?:bench|pipeline) ", stages["build"], re.MULTILINE)


def test_the_image_of_the_broker_can_check_tokens() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    (wanted,) = re.findall(r"dependencies\.py (.*clients/python:cli) >", text)
    arguments = wanted.replace('"broker:${EXTRA}"', "broker:").split()
    libraries = run(sys.executable, ROOT / "scripts" / "dependencies.py", *arguments)
    assert "pyjwt[crypto]" in libraries


def environment(folder: Path, built: Built, *distributions: str, but: tuple[str, ...] = ()) -> tuple[Path, Path]:
    """An environment with these of ours: (its bin folder, a folder with links to the libraries that they declare)."""
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--no-index", "--no-deps", "--quiet", *(built.wheels[name] for name in distributions))
    links = folder / "libraries"
    links.mkdir()
    libraries, _ = needed([(name, "") for name in distributions])
    for library in {each for requirement in libraries for each in closure(re.split(r"[<>=]", requirement)[0])} - {*but}:
        for top in tops(library):
            link = links / top.name
            if top.exists() and not link.exists():
                link.symlink_to(top)
    return python.parent, links


def closure(library: str) -> set[str]:
    """A library and the libraries that it needs, by name."""
    found, waiting = set[str](), [library]
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in found:
            continue
        found.add(name)
        declared = [Requirement(requirement) for requirement in metadata.requires(name) or ()]
        waiting += [each.name for each in declared if each.marker is None or each.marker.evaluate({"extra": ""})]
    return found


def tops(library: str) -> set[Path]:
    """What an installed library has in site-packages."""
    files = metadata.files(library) or []
    return {SITE_PACKAGES / file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__", "examples")}


def test_matchcore_works_with_numpy_and_nothing_else(built: Built, tmp_path: Path) -> None:
    bin, links = environment(tmp_path, built, "matchcore")
    assert {path.name.partition(".")[0].partition("-")[0] for path in links.iterdir()} == {"numpy"}
    program = """
import sys, matchcore
index = matchcore.FilterIndex()
index.insert("forex.*", 7, syntax="amqp")
assert index.match("forex/eur", syntax="mqtt") == (7,)
offsets, ids = index.match_many(["forex.eur", "x"], syntax="amqp")
assert (offsets.tolist(), ids.tolist()) == ([0, 1, 1], [7])
assert matchcore.__version__
loaded = {name.partition(".")[0] for name in sys.modules} - {"matchcore", "numpy", *sys.stdlib_module_names}
print(sorted(name for name in loaded if not name.startswith(("_", "cython"))))
"""
    assert run(bin / "python", "-c", program, path=links).strip() == "[]"


def test_the_sdk_and_its_command_work_with_msgpack_and_nothing_else(built: Built, tmp_path: Path) -> None:
    bin, links = environment(tmp_path, built, "fanlight")
    assert {path.name.partition("-")[0] for path in links.iterdir()} == {"msgpack"}
    assert "connect" in run(bin / "python", "-c", "import fanlight; print(dir(fanlight))", path=links)
    assert "usage: fanlight" in run(bin / "fanlight", "--help", path=links)


def test_the_broker_runs_with_matchcore_and_what_it_declares(built: Built, tmp_path: Path) -> None:
    bin, links = environment(tmp_path, built, "matchcore", "fanlight-permissions", "fanlight-broker")
    version = project("broker")["project"]["version"]
    assert f"fanlightd {version}" in run(bin / "fanlightd", "version", path=links)
    assert f"fanlightd {version}" in run(bin / "python", "-m", "fanlight_broker", "version", path=links)
    assert "native_port" in run(bin / "fanlightd", "check-config", path=links)
    where = run(bin / "python", "-c", "import fanlight_broker.app as app; print(app.__file__)", path=links)
    assert Path(where.strip()).is_relative_to(tmp_path)
    plugins = "from fanlight_broker.plugins import AuthenticationFailed; print(AuthenticationFailed.__name__)"
    assert run(bin / "python", "-c", plugins, path=links).strip() == "AuthenticationFailed"


def test_a_broker_without_the_archives_distribution_says_how_to_get_it(built: Built, tmp_path: Path) -> None:
    bin, links = environment(tmp_path, built, "matchcore", "fanlight-permissions", "fanlight-broker")
    flags = ("--native-port", "0", "--no-native-websocket", "--no-http", "--no-mqtt", "--no-amqp")
    arguments = ("serve", *flags, "--archive", str(tmp_path / "kept"))
    done = subprocess.run(
        [bin / "fanlightd", *arguments], env={**os.environ, "PYTHONPATH": str(links)}, cwd=tmp_path,
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 2
    assert "pip install ./archive" in done.stdout + done.stderr


def test_the_archives_format_works_with_pyarrow_and_nothing_of_ours(built: Built, tmp_path: Path) -> None:
    bin, links = environment(tmp_path, built, "fanlight-archive")
    program = "import sys, fanlight_archive as a; a.Writer(sys.argv[1]).close(); print(a.Archive(sys.argv[1]).id)"
    assert run(bin / "python", "-c", program, tmp_path / "kept", path=links).strip()


def test_the_load_generator_runs_without_the_broker(built: Built, tmp_path: Path) -> None:
    bin, links = environment(tmp_path, built, "matchcore", "fanlight", "fanlight-bench")
    assert "fan-out" in run(bin / "fanlight", "bench", "load", "--list", path=links)
    assert "usage" in run(bin / "python", "-m", "fanlight_bench.demo", "--help", path=links)


def test_the_pipeline_says_what_it_lacks_and_lists_its_jobs_without_spark(built: Built, tmp_path: Path) -> None:
    names = ("matchcore", "fanlight-permissions", "fanlight-archive", "fanlight", "fanlight-spark")
    bin, links = environment(tmp_path, built, *names)
    assert "traffic" in run(bin / "python", "-m", "fanlight_spark.jobs", path=links)
    assert "usage" in run(bin / "python", "-m", "fanlight_spark.snapshot", "--help", path=links)


def test_nothing_of_ours_is_installed_under_a_name_that_a_user_may_have() -> None:
    """In the environment of this checkout: plain paths to source roots, each with one package and no other module."""
    roots = [Path(line) for file in SITE_PACKAGES.glob("__editable__*.pth") for line in file.read_text().splitlines()]
    assert {root for root in roots if root.is_relative_to(ROOT)} >= {ROOT / "broker", ROOT / "clients/python/src"}
    known = {package for _, package in OURS.values()} | {"fanlight_matchers", "fanlight_content"}
    for root in roots:
        packages = {path.parent.name for path in root.glob("*/__init__.py")}
        assert packages <= known, root
        assert {path.name for path in root.glob("*.py")} <= {"setup.py"}, root
    for name, (_, package) in OURS.items():
        assert metadata.version(name)
        assert name in metadata.packages_distributions().get(package, [name])


def test_all_have_one_version_and_name_each_other_by_it() -> None:
    folders = [*(folder for folder, _ in OURS.values()), *RESEARCH]
    (version,) = {project(folder)["project"]["version"] for folder in folders}
    source = "import fanlight_broker, matchcore; print(fanlight_broker.__version__, matchcore.__version__)"
    assert run(sys.executable, "-c", source).split() == [version, version]
    for folder in folders:
        table = project(folder)["project"]
        groups = [table["dependencies"], *table.get("optional-dependencies", {}).values()]
        for group in (*groups, project(folder)["build-system"]["requires"]):
            named = [requirement for requirement in group if re.match(r"matchcore|fanlight", requirement)]
            assert all(requirement.endswith(f"=={version}") for requirement in named), f"{folder}: {named}"


def test_the_constraints_pin_everything_and_name_no_host() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(line.count("==") == 1 and not set(line) & set(" :/;@") for line in pins)

    declared: list[str] = [requirement for group in project(".")["dependency-groups"].values() for requirement in group]
    for folder in (*(folder for folder, _ in OURS.values()), *RESEARCH):
        table = project(folder)
        groups = [
            table["project"]["dependencies"],
            *table["project"].get("optional-dependencies", {}).values(),
            table["build-system"]["requires"],
        ]
        declared += [requirement for group in groups for requirement in group]
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in pins}
    names = {re.split(r"[>=<\[]", requirement)[0].strip().lower() for requirement in declared}
    assert not names - pinned - {*OURS, "fanlight-matchers"}
