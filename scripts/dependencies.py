"""Print the run-time dependencies of projects, one a line: what `pip install -r` reads.

    dependencies.py FOLDER[:EXTRA]...

pip cannot install the dependencies of a project without the project, and a container's layer of dependencies
must not depend on the sources. So they are read from each folder's pyproject.toml, where they are declared.
"""

import sys
import tomllib
from pathlib import Path


def dependencies(folder: Path, extra: str) -> list[str]:
    """The requirements of the project in `folder`, with those of one extra unless it is empty."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: list[str] = list(project["dependencies"])
    if extra:
        found += project["optional-dependencies"][extra]
    return found


def main() -> None:
    """Print what the command line asks for."""
    for argument in sys.argv[1:]:
        folder, _, extra = argument.partition(":")
        for requirement in dependencies(Path(folder), extra):
            print(requirement)


if __name__ == "__main__":
    main()
