"""Print what distributions of ours need: the libraries, one a line, as `pip install -r` reads them; or the folders.

    dependencies.py FOLDER[:EXTRA]...              libraries of others
    dependencies.py --folders FOLDER[:EXTRA]...    distributions of ours, these and what they need, as folders

pip cannot install the dependencies of a project without the project, and a container's layer of dependencies
must not depend on the sources. So they are read from each folder's pyproject.toml, where they are declared.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = ("matchcore", "permissions", "archive", "broker", "clients/python", "pipeline", "bench")
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[(?P<extra>[\w-]+)\])?")


def projects() -> dict[str, tuple[str, dict[str, dict[str, list[str]]]]]:
    """name -> (folder, its table [project]) of our distributions that are here: an image copies some."""
    found = {}
    for folder in OURS:
        path = ROOT / folder / "pyproject.toml"
        if path.exists():
            table = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
            found[table["name"]] = (folder, table)
    return found


def needed(wanted: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """(libraries, folders) of the (distribution, extra) pairs that are wanted, and of all of ours that these need."""
    ours = projects()
    libraries: dict[str, None] = {}
    folders: dict[str, None] = {}
    waiting, seen = list(wanted), set[tuple[str, str]]()
    while waiting:
        name, extra = waiting.pop(0)
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        folder, table = ours[name]
        folders[folder] = None
        for requirement in [*table["dependencies"], *(table["optional-dependencies"][extra] if extra else [])]:
            match = REQUIREMENT.match(requirement)
            assert match is not None, requirement
            if match["name"] in ours:
                waiting.append((match["name"], match["extra"] or ""))
            else:
                libraries[requirement] = None
    return list(libraries), [folder for folder in OURS if folder in folders]


def main() -> None:
    """Print what the command line asks for."""
    names = {folder: name for name, (folder, _) in projects().items()}
    arguments = [argument for argument in sys.argv[1:] if argument != "--folders"]
    wanted = [(names[folder], extra) for folder, _, extra in (argument.partition(":") for argument in arguments)]
    libraries, folders = needed(wanted)
    for line in folders if "--folders" in sys.argv else libraries:
        print(line)


if __name__ == "__main__":
    main()
