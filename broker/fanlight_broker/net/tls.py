"""TLS: the certificate in force, and how it is read from its files.

A context is made anew for each set of files and replaced as a whole: connections that begin after `use` get the new
certificate, those that are there keep what they agreed on. What is wrong with a file is said with the setting that
names it and what to do. Ciphers are Python's choice. The handshake is in acceptor.py.
"""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

FILE_BYTES_MAX: Final = 4 * 1024 * 1024  # a chain has some KiB; the system's whole set of CAs a quarter of a MiB

VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
CLIENTS: Final = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class TlsError(Exception):
    """A certificate, key or CA cannot be used. The text names the setting, the file and what to do."""


class TlsFiles(NamedTuple):
    """The settings of TLS: PEM files, and what clients must present."""

    certificate: Path  # the server's own first, then the intermediate ones
    key: Path | None = None  # None: in the certificate's file
    key_password_file: Path | None = None
    client_ca: Path | None = None
    client_certificates: str = "none"  # a key of CLIENTS
    version_min: str = "1.2"  # a key of VERSIONS


class Tls:
    """The TLS context of new connections. One for all listeners of a broker.

    Raises TlsError.
    """

    def __init__(self, files: TlsFiles) -> None:
        self.context = read(files)

    def use(self, context: ssl.SSLContext) -> None:
        """Use this context for connections that begin from now on."""
        self.context = context


def read(files: TlsFiles) -> ssl.SSLContext:
    """Make a context of the files as they are now. Raises TlsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[files.version_min]
    context.options |= ssl.OP_NO_RENEGOTIATION  # a client could make us work without end (TLS 1.2)
    _load_certificate(context, files)
    if files.client_ca is not None:
        _look_at(files.client_ca, "tls_client_ca", "CERTIFICATE-----", "certificate")
        try:
            context.load_verify_locations(cafile=files.client_ca)
        except (ssl.SSLError, ValueError) as error:
            text = f"{_reason(error)}; put CA certificates there, PEM"
            raise TlsError(f"tls_client_ca {files.client_ca}: {text}") from None
    context.verify_mode = CLIENTS[files.client_certificates]
    return context


def _load_certificate(context: ssl.SSLContext, files: TlsFiles) -> None:
    key = files.key if files.key is not None else files.certificate
    key_setting = "tls_key" if files.key is not None else "tls_certificate"
    _look_at(files.certificate, "tls_certificate", "CERTIFICATE-----", "certificate")
    _look_at(key, key_setting, "PRIVATE KEY-----", "private key")
    password = None if files.key_password_file is None else _password(files.key_password_file)

    def ask() -> bytes:
        # Always given: without it OpenSSL would ask on the terminal.
        if password is None:
            text = "the key is encrypted; say with tls_key_password_file where its password is"
            raise TlsError(f"{key_setting} {key}: {text}")
        return password

    try:
        context.load_cert_chain(files.certificate, key, ask)
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None)
        if reason == "KEY_VALUES_MISMATCH":
            text = "is not the key of the first certificate there; the server's own must come first, its CA's after it"
            raise TlsError(f"{key_setting} {key}, tls_certificate {files.certificate}: {text}") from None
        if password is not None:
            text = f"{_reason(error)}; is the password in tls_key_password_file {files.key_password_file} the key's?"
            raise TlsError(f"{key_setting} {key}: {text}") from None
        text = f"{_reason(error)}; both must be whole and PEM: openssl x509 -noout -text -in {files.certificate}"
        raise TlsError(f"tls_certificate {files.certificate}, key {key}: {text}") from None
    except OSError as error:  # it was removed after it was checked
        raise TlsError(f"tls_certificate {files.certificate}, key {key}: {error.strerror or error}") from None


def _look_at(path: Path, setting: str, mark: str, what: str) -> None:
    """Report what OpenSSL does not: which file it is, and what is missing in it."""
    if mark not in _text(path, setting):
        raise TlsError(f"{setting} {path}: there is no {what} in it, in PEM form ('-----BEGIN ... {mark}')")


def _password(path: Path) -> bytes:
    lines = _text(path, "tls_key_password_file").splitlines()
    if not lines or not lines[0]:
        raise TlsError(f"tls_key_password_file {path}: its first line, the key's password, is empty")
    return lines[0].encode("latin-1")


def _text(path: Path, setting: str) -> str:
    try:
        with path.open("rb") as file:
            octets = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        text = f"{error.strerror or error}; the broker's user must be able to read it"
        raise TlsError(f"{setting} {path}: {text}") from None
    if len(octets) > FILE_BYTES_MAX:
        raise TlsError(f"{setting} {path}: more than {FILE_BYTES_MAX} bytes; is it the right file?")
    return octets.decode("latin-1")


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason).lower().replace("_", " ") if reason else str(error)


def name_of(certificate: Mapping[str, Any] | None) -> str:
    """The name in a client's certificate: its common name, else its first alternative name, else its serial number.

    certificate  as `SSLSocket.getpeercert` gives it; "" is returned without one
    """
    if not certificate:
        return ""
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    names = names[-1:] or [value for _, value in certificate.get("subjectAltName", ())]  # the last is the most specific
    return str(names[0]) if names and names[0] else f"certificate {certificate['serialNumber']}"
