"""Write the version that the file VERSION has wherever it is needed: `make version NEW=0.2.0`, or --check.

The file is the one place to change. Each distribution has a pyproject.toml that must stand alone in its archive, so the
version is copied there, and not looked up.

    set_version.py 0.2.0      a new version, and all copies of it
    set_version.py --check    exit code 1 and a line for each copy that is another one
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
FILE: Final = ROOT / "VERSION"
VERSION: Final = r"(?P<version>\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)"
OURS: Final = r"(?:fanlight(?:-\w+)?|matchcore)(?:\[\w+\])?"
# Files -> what stands before a version that is ours.
PLACES: Final = {
    "**/pyproject.toml": (r'(?m)^version = "', rf'"{OURS}=='),
    "**/__init__.py": (r'(?m)^__version__ = "',),
    "Dockerfile": (r"(?m)^ARG VERSION=",),
    "deploy/helm/fanlight/Chart.yaml": (r"(?m)^version: ", r'(?m)^appVersion: "'),
    "clients/js/package.json": (r'(?m)^  "version": "',),
    "clients/js/src/connection.js": (r"(?m)^const AGENT = 'fanlight-js/",),
}
SKIPPED: Final = {".venv", "build", "node_modules", "dist"}


def copies() -> Iterator[tuple[Path, re.Match[str]]]:
    """Each copy of the version: the file, and a match whose group `version` it is."""
    for pattern, before in PLACES.items():
        for path in sorted(ROOT.glob(pattern)):
            if any(part in SKIPPED or part.startswith(".venv") for part in path.relative_to(ROOT).parts):
                continue
            text = path.read_text(encoding="utf-8")
            for each in before:
                for match in re.finditer(each + VERSION, text):
                    yield path, match


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        version = FILE.read_text(encoding="utf-8").strip()
        wrong = [(path, match["version"]) for path, match in copies() if match["version"] != version]
        for path, other in wrong:
            print(f"{path.relative_to(ROOT)}: {other}, and VERSION has {version}: make version NEW={version}")
        return 1 if wrong else 0
    if len(arguments) != 1 or not re.fullmatch(VERSION, arguments[0]):
        print("set_version: give a version such as 0.2.0 or 0.2.0rc1, or --check", file=sys.stderr)
        return 2
    for path in sorted({path for path, _ in copies()}):
        text = path.read_text(encoding="utf-8")
        places = sorted({match.span("version") for each, match in copies() if each == path}, reverse=True)
        for begin, end in places:
            text = text[:begin] + arguments[0] + text[end:]
        path.write_text(text, encoding="utf-8")
    FILE.write_text(f"{arguments[0]}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
