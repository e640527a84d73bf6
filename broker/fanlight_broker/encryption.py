"""TLS as a part: the certificate for all TLS ports, read again on SIGHUP."""

from fanlight_broker.config import Settings
from fanlight_broker.net.tls import Tls, TlsError, TlsFiles
from fanlight_broker.parts import Apply, Part, PartError


class Encryption(Part):
    name = "tls"
    tls: Tls | None = None  # None without a certificate, and until it is open

    def __init__(self, settings: Settings) -> None:
        self._files = tls_files_of(settings)

    async def open(self) -> None:
        try:
            self.tls = Tls(self._files) if self._files is not None else None
        except TlsError as error:
            raise PartError(str(error)) from error

    def reload(self, settings: Settings) -> Apply:
        files, tls = tls_files_of(settings), self.tls
        if (files is None) != (tls is None):
            raise PartError("tls_certificate: TLS is turned on and off by a restart only; all else stays as it is, too")
        if files is None or tls is None:
            return super().reload(settings)
        try:
            return tls.prepare(files)
        except TlsError as error:
            raise PartError(str(error)) from error


def tls_files_of(settings: Settings) -> TlsFiles | None:
    """What TLS is made of; None if there is to be none."""
    if settings.tls_certificate is None:
        return None
    return TlsFiles(
        settings.tls_certificate, settings.tls_key, settings.tls_key_password_file, settings.tls_client_ca,
        settings.tls_client_certificates.value, settings.tls_version_min.value,
        settings.tls_client_crl, settings.tls_client_name.value,
    )
