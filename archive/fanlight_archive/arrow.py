"""Imports pyarrow, which is an extra: if it is missing, the error says so."""

ADVICE = (
    "the archive needs pyarrow, which is not installed: `make archive` in a checkout, "
    "`docker build --build-arg EXTRA=archive` for an image, `pip install pyarrow` elsewhere"
)

try:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
    from pyarrow import compute as pc  # type: ignore[import-untyped, unused-ignore]
    from pyarrow import ipc  # type: ignore[import-untyped, unused-ignore]
except ModuleNotFoundError as error:
    if error.name != "pyarrow":
        raise  # it is installed, but cannot be imported
    raise ModuleNotFoundError(ADVICE, name=error.name) from error

__all__ = ["ADVICE", "ipc", "pa", "pc"]
