"""What a `fanlights://` connection is encrypted with: a context made of the options `ca`, `certificate` and `key`.

The broker's certificate is always checked, and its name too. Who wants something else passes a context of his own.
"""

import ssl
from collections.abc import Callable
from os import PathLike, fspath

from .errors import ConnectError

Path = str | PathLike[str]


def context(ca: Path | None = None, certificate: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
    """A context that trusts the CA certificates in `ca` (PEM), or the system's if it is None.

    certificate, key: what this client shows, for brokers that ask for it; the key may be in the same file.

    Raises ConnectError for files that cannot be used, ValueError for a key without its certificate.
    """
    if key is not None and certificate is None:
        raise ValueError("key is the key of a certificate; give certificate too")
    made = ssl.create_default_context()
    if ca is not None:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _try(lambda: made.load_verify_locations(cafile=fspath(ca)), "the CA certificates", ca)
    if certificate is not None:
        key_file = None if key is None else fspath(key)
        _try(lambda: made.load_cert_chain(fspath(certificate), key_file, _no_password), "the certificate", certificate)
    return made


def _no_password() -> str:
    raise ValueError("the key is encrypted; pass a context of your own (tls=)")  # OpenSSL would ask on the terminal


def _try(load: Callable[[], None], what: str, path: Path) -> None:
    try:
        load()
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise ConnectError(f"cannot use {what} in {fspath(path)}: {reason}", code="tls") from error
