"""Certificates for tests: a CA of the test's own, and what it signs, as PEM files.

    def test_something(certificates, start_broker):
        start_broker(tls_certificate=certificates.server, ...)
"""

import ssl
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization


class Certificates:
    """A CA, and a folder with what it has signed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = trustme.CA()
        self.ca = folder / "ca.pem"
        self.authority.cert_pem.write_to_path(self.ca)
        self.server = self.sign("server", "localhost", "127.0.0.1", "::1")

    def sign(self, file: str, *names: str, common_name: str | None = None) -> Path:
        """A certificate and its key in one file, made or made anew."""
        path = self.folder / f"{file}.pem"
        signed = self.authority.issue_cert(*names, common_name=common_name)
        signed.private_key_and_cert_chain_pem.write_to_path(path)
        return path

    def encrypted(self, file: str, password: bytes) -> tuple[Path, Path]:
        """A certificate, and its key under a password."""
        signed = self.authority.issue_cert("localhost")
        certificate, key = self.folder / f"{file}.pem", self.folder / f"{file}.key"
        signed.cert_chain_pems[0].write_to_path(certificate)
        plain = serialization.load_pem_private_key(signed.private_key_pem.bytes(), None)
        key.write_bytes(
            plain.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(password),
            )
        )
        return certificate, key

    def context(self, client: Path | None = None, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
        """What a client connects with that trusts this CA."""
        context = ssl.create_default_context(cafile=self.ca)
        if client is not None:
            context.load_cert_chain(client)
        if version is not None:
            context.minimum_version = context.maximum_version = version
        return context
