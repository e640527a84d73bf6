"""TLS: the certificate in force, and how it is read from its files.

A context is made anew for each set of files and replaced as a whole: connections that begin after `use` get the new
certificate, those that are there keep what they agreed on. What is wrong with a file is said with the setting that
names it and what to do. Ciphers are Python's choice. The handshake is in acceptor.py.
"""

import re
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from fanlight_broker.net.revocations import revoked_in
from fanlight_broker.net.validity import expires_in

FILE_BYTES_MAX: Final = 4 * 1024 * 1024  # a chain has some KiB; the system's whole set of CAs a quarter of a MiB

SHORT: Final = {  # RFC 4514, 3
    "commonName": "CN", "organizationName": "O", "organizationalUnitName": "OU", "countryName": "C",
    "localityName": "L", "stateOrProvinceName": "ST", "domainComponent": "DC", "userId": "UID",
}
VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
# Where the name of a client is in its certificate: the kind of alternative name (RFC 5280, 4.2.1.6), as Python has it.
NAMES: Final = {"common_name": "", "subject": "", "email": "email", "dns": "DNS", "uri": "URI"}
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
    client_crl: Path | None = None
    client_name: str = "common_name"  # a key of NAMES


class Tls:
    """The TLS context of new connections. One for all listeners of a broker.

    Raises TlsError.
    """

    context: ssl.SSLContext
    expires: float  # the certificate does, in seconds since 1970

    def __init__(self, files: TlsFiles) -> None:
        self.prepare(files)()

    def prepare(self, files: TlsFiles, pause: Callable[[], None] | None = None) -> Callable[[], None]:
        """Read the files, and change nothing. Returns what applies them to further connections. Raises TlsError.

        It may run in a thread. pause: called now and then, every 1 ms or so, while a long list is read.
        """
        context, revoked, expires = read(files), read_revoked(files, pause), read_expiry(files)

        def apply() -> None:
            self.context, self._revoked, self._client_name = context, revoked, files.client_name
            self.expires = expires

        return apply

    def name_of(self, certificate: Mapping[str, Any] | None) -> str:
        """The name of a client by its certificate; "" without one."""
        return name_of(certificate, self._client_name)

    def revokes(self, serial: int | None) -> bool:
        """Whether the certificate with this serial number is on the list."""
        return serial in self._revoked


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
    if files.client_crl is not None:
        _look_at(files.client_crl, "tls_client_crl", "X509 CRL-----", "revocation list")
        try:
            context.load_verify_locations(cafile=files.client_crl)
        except (ssl.SSLError, ValueError) as error:
            raise TlsError(f"tls_client_crl {files.client_crl}: {_reason(error)}; put revocation lists there") from None
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    context.verify_mode = CLIENTS[files.client_certificates]
    return context


def read_revoked(files: TlsFiles, pause: Callable[[], None] | None = None) -> frozenset[int]:
    """The serial numbers of revoked certificates. Raises TlsError."""
    if files.client_crl is None:
        return frozenset()
    try:
        return revoked_in(_text(files.client_crl, "tls_client_crl"), pause)
    except ValueError as error:
        raise TlsError(f"tls_client_crl {files.client_crl}: {error}") from None


def read_expiry(files: TlsFiles) -> float:
    """When the server's own certificate expires, in seconds since 1970. Raises TlsError."""
    try:
        return expires_in(_text(files.certificate, "tls_certificate"))
    except ValueError as error:
        raise TlsError(f"tls_certificate {files.certificate}: {error}") from None


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


def name_of(certificate: Mapping[str, Any] | None, which: str = "common_name") -> str:
    """The name in a client's certificate; without a name of that kind, "certificate" and its serial number.

    certificate  as `SSLSocket.getpeercert` gives it; "" is returned without one
    which        a key of NAMES. common_name: else the first alternative name; subject: all of it, as CN=a,O=b
                 (RFC 4514), the most specific first
    """
    if not certificate:
        return ""
    subject = [pair for part in certificate.get("subject", ()) for pair in part]
    alternative = certificate.get("subjectAltName", ())
    if which == "common_name":
        names = [value for key, value in subject if key == "commonName"][-1:]  # the last is the most specific
        names = names or [value for _, value in alternative]
    elif which == "subject":
        names = [",".join(f"{SHORT.get(key, key)}={_escaped(value)}" for key, value in reversed(subject))]
    else:
        names = [value for key, value in alternative if key == NAMES[which]]
    return str(names[0]) if names and names[0] else f"certificate {certificate['serialNumber']}"


def serial_of(certificate: Mapping[str, Any] | None) -> int | None:
    """The serial number of a certificate; None without one."""
    return int(certificate["serialNumber"], 16) if certificate else None


def _escaped(value: str) -> str:
    """A value of a subject, so that a comma in it does not begin another part (RFC 4514, 2.4)."""
    text = re.sub(r'([,+"\\<>;=])', r"\\\1", value)
    return f"\\{text}" if text.startswith(("#", " ")) else text
