"""What a release is made by: workflows, tables of wheels, hashes and the compose file, each by its own checker."""

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tests.distributions import ROOT, run

BIN = Path(sys.executable).parent
PIN = re.compile(r"(?m)^([\w.-]+)==([^\s;]+)")
COMPILED = ("matchcore", "broker", "bench")


def pins(name: str) -> dict[str, str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return {library.lower().replace("_", "-"): version for library, version in PIN.findall(text)}


@pytest.mark.parametrize(
    ("schema", "file"),
    [("github-workflows", ".github/workflows/release.yml"), ("compose-spec", "compose.yaml")],
)  # fmt: skip
def test_a_file_fits_the_schema_of_its_kind(schema: str, file: str) -> None:
    assert "ok" in run(BIN / "check-jsonschema", "--builtin-schema", f"vendor.{schema}", ROOT / file)


def test_the_commands_of_the_workflow_are_there() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"\bmake (\w+)", text.replace("gcc make", "")))
    assert targets
    assert all(re.search(rf"(?m)^{target}:", makefile) for target in targets)
    scripts = re.findall(r"(?:scripts|\.ci)/\w+(?:\.\w+)?", text)
    assert all((ROOT / script).exists() for script in scripts)


@pytest.mark.parametrize("folder", COMPILED)
def test_wheels_are_made_for_each_python_that_a_distribution_names(folder: str) -> None:
    identifiers = run(BIN / "cibuildwheel", "--print-build-identifiers", "--platform", "linux", ROOT / folder).split()
    table = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {each.rpartition(" ")[2] for each in table["classifiers"] if re.search(r":: 3\.\d+$", each)}
    assert {f"3.{each[3:5]}" for each in identifiers} == named
    assert all("manylinux" in each for each in identifiers)


def test_every_distribution_is_made_where_it_finds_the_wheels_before_it(tmp_path: Path) -> None:
    """matchcore is on no index before the release, and the broker cannot be asked what it is made of without it.

    Wheels of manylinux need containers, so a program that notes how it is called stands for Python.
    """
    out, python, calls = tmp_path / "dist", tmp_path / "python", tmp_path / "calls"
    python.write_text(f'#!/bin/sh\necho "$PIP_FIND_LINKS $*" >> {calls}\n', encoding="utf-8")
    python.chmod(0o755)
    run("sh", ROOT / "scripts" / "build_wheels.sh", out, PATH=f"{tmp_path}:/usr/bin:/bin")
    made = [line.split() for line in calls.read_text(encoding="utf-8").splitlines()]
    assert {links for links, *_ in made} == {str(out)}
    folders = [line[-1] for line in made if "--sdist" in line]
    assert folders[0] == "matchcore"
    assert set(folders) >= set(COMPILED)
    assert [line[-1] for line in made if "cibuildwheel" in line] == list(COMPILED)


def test_every_library_that_is_shipped_has_its_hashes_at_the_version_that_is_tested() -> None:
    hashed, tested = pins("constraints-hashes.txt"), pins("constraints.txt")
    assert not {name: version for name, version in hashed.items() if tested.get(name) != version}, "make hashes"
    text = (ROOT / "constraints-hashes.txt").read_text(encoding="utf-8")
    with_hash = re.findall(r"(?m)^[\w.-]+==[^\n]*\\\n    --hash=sha256:", text)
    assert len(with_hash) == len(re.findall(r"(?m)^[\w.-]+==", text))
    wanted = ("broker:jwt", "broker:archive", "clients/python:cli", "pipeline:spark", "bench")
    needed = run(sys.executable, ROOT / "scripts" / "dependencies.py", *wanted).split("\n")
    names = {re.split(r"[\[<>=]", each)[0].lower().replace("_", "-") for each in needed if each}
    assert names <= set(hashed), "make hashes"


def test_the_image_is_built_of_what_has_hashes() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "-r requirements.txt" in line]
    assert len(lines) == 3
    assert all("--require-hashes -c constraints-hashes.txt" in line for line in lines)


def test_the_list_of_what_is_shipped_names_all_of_it(tmp_path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (options,) = re.findall(r"cyclonedx-py requirements (\S+) --output-reproducible --validate", makefile)
    run(
        BIN / "cyclonedx-py", "requirements", ROOT / options, "--output-reproducible", "--validate",
        "--output-file", tmp_path / "list.json",
    )  # fmt: skip
    found = json.loads((tmp_path / "list.json").read_text(encoding="utf-8"))["components"]
    listed = {each["name"].lower().replace("_", "-"): each["version"] for each in found}
    assert listed == pins(options)
