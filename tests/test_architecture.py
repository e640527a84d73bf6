"""The floors of ARCHITECTURE.md, kept: who may import whom, who does I/O, what a folder must have.

import-linter reads the Python files. It does not see `cimport`, so the same contracts, read from
pyproject.toml, are applied here to the .pyx and .pxd files; one list of floors serves both.
"""

import ast
import contextlib
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from setuptools import Extension

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS: list[dict[str, Any]] = PYPROJECT["tool"]["importlinter"]["contracts"]

LINES_MAX = 500
# Where `import` begins: a folder for each distribution, and in it the package that it installs.
SOURCE_ROOTS = (
    "matchcore", "permissions", "broker", "archive", "pipeline", "bench", "research/matchers", "research/content",
    "clients/python/src",
)  # fmt: skip
BROKER = "broker/fanlight_broker"
COMPILED_PACKAGES = (
    "matchcore/matchcore", BROKER, "bench/fanlight_bench", "research/matchers/fanlight_matchers",
    "research/content/fanlight_content",
)  # fmt: skip
PURE = ("matchcore/matchcore", f"{BROKER}/wire", f"{BROKER}/core", f"{BROKER}/protocols")  # no I/O, no clock
PROTOCOL_WORDS = {"mqtt", "amqp", "native"}
WIRE_WORDS = PROTOCOL_WORDS | {"packet", "packets", "connack", "puback", "pubrec", "pubrel", "pubcomp", "suback"}
SYNTAX_FILES = {"broker/fanlight_broker/core/topics.py"}  # the names of the topic syntaxes are matchcore's words

STRINGS_AND_COMMENTS = re.compile(
    r'"""(?:\\.|[^\\])*?"""'  # longest quotes first
    r"|'''(?:\\.|[^\\])*?'''"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'"
    r"|\#[^\n]*",
    re.DOTALL,
)


def sources(*folders: str, suffixes: tuple[str, ...]) -> list[Path]:
    """The files of our own code below `folders`, without what a build leaves there."""
    found = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    return sorted(path for path in found if "__pycache__" not in path.parts)


def name(path: Path) -> str:
    """The path as the tests speak of it: relative to the checkout."""
    return path.relative_to(ROOT).as_posix()


def within(path: Path) -> Path:
    """The path from the source root on: what `import` sees of it."""
    (root,) = (root for root in SOURCE_ROOTS if path.is_relative_to(ROOT / root))
    return path.relative_to(ROOT / root)


def module_of(path: Path) -> str:
    """The module's name."""
    return ".".join(within(path).with_suffix("").parts)


def code_of(path: Path) -> str:
    """The text with its strings and comments blanked out, line numbers kept."""

    def blank(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n") or " "

    return STRINGS_AND_COMMENTS.sub(blank, path.read_text(encoding="utf-8"))


def compiled_imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of every import and cimport of a .pyx or .pxd file, relative ones resolved."""
    package = within(path.parent).parts
    for number, line in enumerate(code_of(path).splitlines(), 1):
        if match := re.match(r"\s*from\s+(\.*)([\w.]*)\s+c?import\s+(.+)", line):
            base = list(package[: len(package) - len(match[1]) + 1]) if match[1] else []
            module = ".".join(base + ([match[2]] if match[2] else []))
            # `from fanlight_broker.wire cimport outbox` names a module; `from x cimport Class` names a part of x.
            for part in re.findall(r"(\w+)(?:\s+as\s+\w+)?", match[3]):
                yield number, f"{module}.{part}"
        elif match := re.match(r"\s*c?import\s+([\w., ]+)", line):
            for module in match[1].split(","):
                yield number, module.split(" as ")[0].strip()


def layers() -> list[list[str]]:
    """The layers, uppermost first: each a list of modules that do not know each other."""
    (contract,) = (contract for contract in CONTRACTS if contract["type"] == "layers")
    return [[module.strip(" ()") for module in floor.split("|")] for floor in contract["layers"]]


def place(module: str) -> tuple[int, str] | None:
    """The floor (0 the uppermost) and the room of a module, or None if it is not on the plan."""
    for floor, rooms in enumerate(layers()):
        for room in rooms:
            if module == room or module.startswith(f"{room}."):
                return floor, room
    return None


def forbidden() -> Iterator[tuple[str, set[str]]]:
    """(package, modules it must not import) of every contract of that kind."""
    for contract in CONTRACTS:
        if contract["type"] == "forbidden":
            for source in contract["source_modules"]:
                yield source, set(contract["forbidden_modules"])


def test_the_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_module_of_the_broker_has_a_layer() -> None:
    modules = {
        f"fanlight_broker.{path.stem}"
        for path in (ROOT / BROKER).iterdir()
        if (path.suffix in (".py", ".pyx") and path.stem != "__init__") or (path / "__init__.py").exists()
    }
    missing = sorted(module for module in modules if place(module) is None)
    assert not missing, f"add these to the layers in pyproject.toml: {missing}"


COMPILED = sources(*COMPILED_PACKAGES, suffixes=(".pyx", ".pxd"))


def test_there_are_compiled_modules_to_read() -> None:
    assert any(path.suffix == ".pyx" for path in COMPILED)


@pytest.mark.parametrize("path", COMPILED, ids=name)
def test_cimports_go_down_and_never_to_a_neighbour(path: Path) -> None:
    here = place(module_of(path))
    if here is None:
        assert name(path).startswith(("bench/", "research/"))
        return
    for line, module in compiled_imports(path):
        there = place(module)
        if there is None or there[1] == here[1]:
            continue
        assert there[0] > here[0], f"{name(path)}:{line} imports {module}: up, or from a neighbour"


@pytest.mark.parametrize("path", COMPILED, ids=name)
def test_compiled_modules_import_nothing_that_is_forbidden_to_their_package(path: Path) -> None:
    module = module_of(path)
    banned = set[str]()
    for package, names in forbidden():
        if f"{module}.".startswith(f"{package}."):
            banned |= names
    if module.startswith("fanlight_bench.micro."):
        banned.discard("fanlight_broker")
    if name(path).startswith(PURE):
        # The same things by their C names.
        banned |= {"libc.time", "posix.time", "posix.unistd", "posix.select", "cpython.pythread"}
    for line, imported in compiled_imports(path):
        guilty = [ban for ban in banned if f"{imported}.".startswith(f"{ban}.")]
        assert not guilty, f"{name(path)}:{line} imports {imported}"


def async_definitions(path: Path) -> list[int]:
    """The lines of the coroutines defined in a file, except what a port promises: bodies that are `...`."""
    if path.suffix != ".py":
        lines = code_of(path).splitlines()
        return [number for number, line in enumerate(lines, 1) if re.match(r"\s*(async\s|.*\bawait\s)", line)]
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.AsyncFunctionDef):
            promise = not [one for one in node.body if not isinstance(one, ast.Expr)]
            if not (promise and name(path) == "broker/fanlight_broker/core/ports.py"):
                found.append(node.lineno)
    return found


@pytest.mark.parametrize("folder", PURE)
def test_there_is_no_coroutine_outside_the_io_folders(folder: str) -> None:
    for path in sources(folder, suffixes=(".py", ".pyx")):
        assert not async_definitions(path), f"{name(path)}: async at lines {async_definitions(path)}"


def words_of(identifier: str) -> set[str]:
    """The words of a name, in whichever case it is written."""
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", identifier)}


@pytest.mark.parametrize(("folder", "forbidden_words"), [("core", PROTOCOL_WORDS), ("wire", WIRE_WORDS)])
def test_core_and_wire_have_no_name_that_spells_a_protocol(folder: str, forbidden_words: set[str]) -> None:
    """Their comments may cite a specification; their identifiers and their decisions know none."""
    for path in sources(f"{BROKER}/{folder}", suffixes=(".py", ".pyx", ".pxd", ".pyi")):
        if name(path) in SYNTAX_FILES:
            continue
        for number, line in enumerate(code_of(path).splitlines(), 1):
            for identifier in re.findall(r"[A-Za-z_]\w*", line):
                assert not words_of(identifier) & forbidden_words, f"{name(path)}:{number}: {identifier}"


def test_wire_has_no_text_that_spells_a_protocol() -> None:
    """Neither a name that it compares nor a message that it writes: what a frame is called is the protocol's."""
    for path in sources(f"{BROKER}/wire", suffixes=(".pyx", ".pxd")):
        for match in STRINGS_AND_COMMENTS.finditer(path.read_text(encoding="utf-8")):
            if not match[0].startswith(("#", '"""', "'''")):
                found = {word.lower() for word in re.findall(r"[A-Za-z]+", match[0])} & WIRE_WORDS
                assert not found, f"{name(path)}: {match[0]}"


def test_the_core_decides_nothing_by_the_name_of_a_protocol() -> None:
    for path in sources("broker/fanlight_broker/core", suffixes=(".py",)):
        if name(path) in SYNTAX_FILES:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
                assert text.lower() not in PROTOCOL_WORDS, f"{name(path)}:{node.lineno}: {text!r}"


# The composition, without assembly.py, which lists the protocols, and what knows the two syntaxes of topics.
NEUTRAL = [
    f"{BROKER}/{module}.py"
    for module in (
        "app", "parts", "listeners", "listening", "administration", "inspecting", "measuring", "core_part",
        "authentication", "encryption", "config/checks", "config/keys", "config/load",
    )
]  # fmt: skip


@pytest.mark.parametrize("file", NEUTRAL)
def test_the_composition_spells_no_protocol(file: str) -> None:
    """Neither its identifiers nor its texts: a protocol brings its own (core/protocol_part.py)."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    said = [getattr(node, kind, "") for node in ast.walk(tree) for kind in ("id", "attr", "arg")]
    said += [
        node.value for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    ]
    spelled = [text for text in said if PROTOCOL_WORDS & words_of(str(text))]
    assert not spelled, f"{file}: {spelled}"


PYX = sources(*COMPILED_PACKAGES, suffixes=(".pyx",))


@pytest.mark.parametrize("path", PYX, ids=name)
def test_a_compiled_module_shows_its_face_and_its_fields(path: Path) -> None:
    assert path.with_suffix(".pyi").exists(), "no .pyi: mypy and editors see nothing of it"
    # Nobody builds upon the load generators and the contenders, so their fields are their own.
    if re.search(r"^cdef class ", code_of(path), re.MULTILINE) and not name(path).startswith(("bench/", "research/")):
        assert path.with_suffix(".pxd").exists(), "cdef classes, and no .pxd that explains their fields"


SETUPS = sorted({next(root for root in SOURCE_ROOTS if path.is_relative_to(ROOT / root)) for path in PYX})


def extensions(folder: str) -> list[Extension]:
    """What the setup.py of a distribution asks setuptools to build."""
    asked: list[Extension] = []
    with contextlib.chdir(ROOT / folder), pytest.MonkeyPatch.context() as patch:
        patch.setattr("setuptools.setup", lambda ext_modules: asked.extend(ext_modules))
        runpy.run_path("setup.py")
    return asked


@pytest.mark.parametrize("folder", SETUPS)
def test_every_pyx_is_built_and_everything_built_is_there(folder: str) -> None:
    built = {ROOT / folder / module.sources[0]: module.name for module in extensions(folder)}
    assert built == {path: module_of(path) for path in PYX if path.is_relative_to(ROOT / folder)}


@pytest.mark.parametrize("folder", SETUPS)
def test_compiler_flags_are_portable(folder: str) -> None:
    """What is shipped runs on any machine of its architecture; wide vectors are chosen at run time."""
    for module in extensions(folder):
        flags = [*module.extra_compile_args, *module.extra_link_args]
        assert not [flag for flag in flags if flag.startswith(("-march", "-mtune", "-mcpu", "-mavx"))]


OLD_NAMES = ("broker", "permissions", "archive", "pipeline", "bench")
OLD_IMPORT = re.compile(rf"^\s*(?:from|import|cimport)\s+(?:{'|'.join(OLD_NAMES)})(?:\.[\w.]+)?\s", re.MULTILINE)


def test_nothing_is_imported_by_the_name_of_a_top_folder() -> None:
    """`import broker` succeeds in the checkout, as an empty namespace package: so it is looked for in the text."""
    assert OLD_IMPORT.search("from broker.core import views\n")
    assert not OLD_IMPORT.search("from fanlight_broker.core import broker\n")
    for path in project_files():
        if path.suffix in (".py", ".pyx", ".pxd", ".pyi"):
            match = OLD_IMPORT.search(code_of(path))
            assert match is None, f"{name(path)}: {match and match[0].strip()}"


def test_no_file_grows_past_what_one_reads_in_a_sitting() -> None:
    folders = (*SOURCE_ROOTS, "clients", "tests", "scripts")
    lengths = {
        name(path): path.read_text(encoding="utf-8").count("\n")
        for path in sources(*folders, suffixes=(".py", ".pyx", ".pxd", ".pyi", ".sh"))
    }
    too_long = {path: lines for path, lines in lengths.items() if lines > LINES_MAX}
    assert not too_long, f"split these by their nouns: {too_long}"
    for path, lines in sorted(lengths.items(), key=lambda item: -item[1])[:5]:
        print(f"{lines:5} {path}")


def project_files() -> list[Path]:
    """The files git tracks or would; in an unpacked source distribution, those beside the sources."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=60).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        return sources(".", suffixes=(".py", ".pyx", ".pxd", ".pyi", ".md", ".toml", ".sh", ".txt", ".json"))
    return [ROOT / line.decode() for line in listed.split(b"\0") if line and (ROOT / line.decode()).is_file()]


# Written in two parts each, so that this file does not find itself.
SOMEBODYS_MACHINE = re.compile(
    # A path of the machine it was written on, or a registry.
    r"(?<![\w.$}/-])/(?:wo" r"rk|ro" r"ot|ho" r"me/\w+|Us" r"ers/\w+)/"
    r"|files\.python" r"hosted\.org|pypi\.org/" r"simple|regis" r"try-1\.docker|regis" r"try\.npmjs"
    r"|--extra-index" r"-url|--find" r"-links"
)


def test_no_file_names_somebodys_machine_or_a_registrys_host() -> None:
    for path in project_files():
        content = path.read_bytes()
        if b"\0" in content[:8192] or not content:  # not text
            continue
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
            match = SOMEBODYS_MACHINE.search(line)
            assert match is None, f"{name(path)}:{number}: {match and match[0]}"
