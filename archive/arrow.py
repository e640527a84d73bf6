"""Where pyarrow is imported: it is an extra, and without it the error should say so."""

try:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
    from pyarrow import compute as pc  # type: ignore[import-untyped, unused-ignore]
    from pyarrow import ipc  # type: ignore[import-untyped, unused-ignore]
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "the archive needs pyarrow: pip install 'fanlight-broker[archive]'", name=error.name
    ) from error

__all__ = ["ipc", "pa", "pc"]
