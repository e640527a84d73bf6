"""`python -m fanlight_spark.jobs`: which jobs there are. It needs no Spark: their docstrings are read, not run."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path


def jobs() -> Iterator[tuple[str, str]]:
    """(name, what it is in a sentence) of each: the modules here that have a `main`."""
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.name.startswith("__"):
            continue
        module = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in module.body):
            yield path.stem, (ast.get_docstring(module) or "").partition("\n\n")[0].replace("\n", " ")


def main() -> int:
    """Print them; the exit code."""
    print("Jobs over the archive of a broker: python -m fanlight_spark.jobs.NAME --help says more.\n")
    for name, about in jobs():
        print(f"  {name:<12} {about}")
    print("\ndocs/pipeline.md begins with a tutorial.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
