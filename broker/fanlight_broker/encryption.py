"""TLS as a part: the certificate for all TLS ports. SIGHUP reads it again, in a thread: it may have long lists."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.config import Settings
from fanlight_broker.net.tls import Tls, TlsError, TlsFiles
from fanlight_broker.parts import Apply, Part, PartError, SideThread

HELP: Final = {
    "certificate_expires_timestamp_seconds": "When the certificate of the TLS ports expires, in seconds since 1970",
}


class Encryption(Part):
    name = "tls"
    tls: Tls | None = None  # None without a certificate, and until it is open

    def __init__(self, settings: Settings) -> None:
        self._files = tls_files_of(settings)
        self._thread = SideThread()
        self._prepared: Apply | None = None

    async def open(self) -> None:
        try:
            self.tls = Tls(self._files) if self._files is not None else None
        except TlsError as error:
            raise PartError(str(error)) from error

    async def stop(self) -> None:
        self._thread.stop()

    def metrics(self) -> Sequence[MetricSource]:
        if (tls := self.tls) is None:
            return ()
        return (MetricSource(HELP, gauges=lambda: {"certificate_expires_timestamp_seconds": tls.expires}),)

    async def prepare(self, settings: Settings) -> None:
        self._prepared = None
        files, tls = tls_files_of(settings), self.tls
        if (files is None) != (tls is None):
            raise PartError("tls_certificate: TLS is turned on and off by a restart only; all else stays as it is, too")
        if files is not None and tls is not None:
            self._prepared = await self._thread.read(partial(_read, tls, files))

    def reload(self, settings: Settings) -> Apply:
        prepared, self._prepared = self._prepared, None
        return prepared if prepared is not None else super().reload(settings)


def _read(tls: Tls, files: TlsFiles, pause: Callable[[], None]) -> Apply:
    """In a thread. Raises PartError."""
    pause()
    try:
        return tls.prepare(files, pause)
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
