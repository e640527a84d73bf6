"""The notebooks of examples/notebooks: their cells run in their order, as a kernel runs them, in the tests' Spark."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parents[2] / "examples" / "notebooks"


def run_cells(name: str, build: Path) -> dict[str, Any]:
    """What the cells of a notebook have named in the end. build: in place of the checkout's folder of that name."""
    notebook = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) >= (4, 5)
    named: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"], f"{name} has outputs, which would grow old"
            text = "".join(cell["source"]).replace('"../../build"', repr(str(build)))
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, f"{name}, {cell['id']}", "exec"), named)
    return named
