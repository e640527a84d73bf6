r"""The application: makes the parts, puts them together, and sees them through their life.

    start -> listening -> SIGTERM or SIGINT -> draining (say goodbye, flush) -> stopped
                      \-> SIGHUP -> settings, password file and certificate read again

The only place that knows all parts. What a signal does is decided here; what draining means, in net/listener.py.
"""

import asyncio
import signal
import ssl
from collections.abc import Callable
from types import FrameType
from typing import Final

import uvloop

from fanlight_broker import __version__, early, garbage, logs
from fanlight_broker.admin.gatekeeper import MetricsAccess
from fanlight_broker.admin.http import AdminServer, Https
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.archiving import ArchiveUnusable, open_archive
from fanlight_broker.auth.access import Credentials
from fanlight_broker.auth.authenticator import COUNTERS as LOGIN_COUNTERS
from fanlight_broker.auth.authenticator import GAUGES as LOGIN_GAUGES
from fanlight_broker.auth.authenticator import PasswordAuthenticator
from fanlight_broker.auth.password_file import PasswordFileError
from fanlight_broker.config import Exit, Settings, SettingsError, apply_reload, reload, reloadable_changes
from fanlight_broker.config.gauges import limit_families
from fanlight_broker.config.secret_file import SecretFileError, secret_in
from fanlight_broker.core import inspection
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.system_topics import SystemTopics
from fanlight_broker.garbage import Garbage
from fanlight_broker.listeners import CannotListen, Listeners, PluginError, opening, reachable
from fanlight_broker.net import files, tls
from fanlight_broker.net.clock import monotonic, thread_cpu
from fanlight_broker.net.flush import Flusher
from fanlight_broker.net.https import TlsServer
from fanlight_broker.net.lag import LoopLag
from fanlight_broker.net.listener import TICK_SECONDS
from fanlight_broker.net.tls import Tls, TlsError, TlsFiles
from fanlight_broker.wire.outbox import Outbox

log: Final = logs.get("app")


class CannotStart(Exception):
    """What keeps a broker from starting that is not seen in the settings alone; `code` is the exit code."""

    def __init__(self, text: str, code: Exit) -> None:
        super().__init__(text)
        self.code = code


class Application:
    """One broker process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._stopping = asyncio.Event()
        self._stop_now = asyncio.Event()
        self._draining = False
        loop = asyncio.get_running_loop()
        self.broker = Broker(
            settings.limits, lambda: self._flusher.schedule(loop), loop.call_soon,
            lambda seconds, then: loop.call_later(seconds, self._call_back, then), clock=monotonic, cpu=thread_cpu,
        )
        self._flusher = Flusher(self.broker.ledger, flush_fault)
        self.authenticator = PasswordAuthenticator(
            credentials_of(settings), threads=settings.password_threads, queue_max=settings.password_queue_max,
            cache_max=settings.password_cache_max, delay_seconds_max=settings.password_delay_seconds_max,
        )
        files_of_tls = tls_files_of(settings)
        self.tls = Tls(files_of_tls) if files_of_tls is not None else None
        self.archive = open_archive(settings, loop, monotonic, self.broker.flow, lambda: self.broker.limits)
        if self.archive is not None:
            self.broker.router.archive_selection = self.archive.selection
            self.broker.publishing.store = self.broker.replay_source = self.archive
            self.broker.marks.restore(self.archive.kept)
        self.lag = LoopLag(loop)
        self.garbage = Garbage(thread_cpu)
        self.listeners = Listeners(settings, self.broker, self.authenticator, self.tls, self._flusher)
        self.inspection = inspection.BrokerInspection(
            self.broker, monotonic, self.listeners.counters, lambda: self.ready, self.archive
        )
        self.broker.system_topics = SystemTopics(
            settings.limits, self.broker.publishing, self.broker.clients, self.broker.sessions,
            self.inspection.counters, monotonic(), version=__version__,
        )
        self.admin = AdminServer(
            self.inspection, self.authenticator,
            [
                MetricSource(inspection.COUNTERS, self.inspection.counters),
                MetricSource(inspection.GAUGES, gauges=self.inspection.gauges, families=self.inspection.families),
                MetricSource({}, families=self.lag.families),
                MetricSource({**garbage.COUNTERS, **garbage.GAUGES}, self.garbage.counters, self.garbage.gauges),
                MetricSource({}, families=lambda: limit_families(self.broker.limits)),
                MetricSource(
                    {**LOGIN_COUNTERS, **LOGIN_GAUGES}, self.authenticator.counters, self.authenticator.gauges
                ),
                MetricSource(logs.COUNTERS, logs.counters),
                *self.listeners.metrics(),
                *self._archive_metrics(),
            ],
            version=__version__, host=settings.http_host, port=settings.http_port,
            connections_max=settings.http_connections_max,
            connection_seconds_max=settings.http_connection_seconds_max,
            requests_per_second_max=settings.http_requests_per_second_max,
            https=self._https(), metrics=metrics_access_of(settings), protocol_check=self.listeners.port_guide.check,
        )

    def _call_back(self, then: Callable[[float], None]) -> None:
        """Call with the time. A standstill that is just over is noted before: the tick may come after this."""
        now = monotonic()
        self.broker.standstills.note(now, TICK_SECONDS)
        self.broker.turns.begin()
        then(now)

    def _archive_metrics(self) -> list[MetricSource]:
        archive = self.archive
        if archive is None:
            return []
        help = {**archive.counted, **archive.gauged}
        return [MetricSource(help, archive.counters, archive.gauges, families=archive.families)]

    def _https(self) -> Https | None:
        if self.tls is None:
            return None
        server = TlsServer(
            self.tls, "https", self.listeners.handshake_turns, handshakes_max=self.settings.http_connections_max,
            limits=lambda: self.settings.limits, protocol_check=self.listeners.port_guide.check,
        )
        return Https(server, self.settings.http_tls_host or self.settings.http_host, self.settings.http_tls_port)

    @property
    def ready(self) -> bool:
        return self.listeners.accepting and not self._draining

    async def run(self) -> int:
        """Serve until a stop is requested. Returns the exit code. Raises CannotListen."""
        loop = asyncio.get_running_loop()
        self._handle_signals(loop)
        if early.stop_requested():
            self._stopping.set()
        settings = self.settings
        self._allow_connections()
        if self.archive is not None:
            self.archive.start()
        try:
            await self._listen()
            log.info("ready", version=__version__, slow_policy=settings.limits.slow_policy.value)
            self.garbage.start()
            self.lag.start()
            await self._stopping.wait()
            await self._drain()
        finally:
            self.lag.stop()
            self.garbage.stop()
            await self.listeners.stop()
            await self.admin.stop()
            await self.authenticator.close()
            if self.archive is not None:
                await loop.run_in_executor(None, self.archive.stop)
            log.info("stopped", **self._summary())
        return Exit.UNWRITTEN if self.archive is not None and self.archive.unwritten else Exit.OK

    def _handle_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        """As `loop.add_signal_handler` would, but not undone when the loop closes: the process still has to end then,
        with its own exit code.
        """
        def on_stop(number: int, _: FrameType | None) -> None:
            loop.call_soon_threadsafe(self._on_stop_signal, signal.Signals(number).name)

        signal.signal(signal.SIGTERM, on_stop)
        signal.signal(signal.SIGINT, on_stop)
        signal.signal(signal.SIGHUP, lambda number, frame: loop.call_soon_threadsafe(self.reload))

    async def _listen(self) -> None:
        """Open every port. Raises CannotListen."""
        settings = self.settings
        await self.listeners.open(self._placeholder)
        if settings.http:
            with opening("http_port", settings.http_host, settings.http_port):
                await self.admin.start()
            url = f"http://{self._placeholder}{reachable(settings.http_host)}:{self.admin.port}"
            self.listeners.listening("http", settings.http_host, self.admin.port, try_it=f"curl {url}/stats")
            if self.tls is not None:
                host = settings.http_tls_host or settings.http_host
                url = f"https://{self._placeholder}{reachable(host)}:{self.admin.tls_port}"
                self.listeners.listening("https", host, self.admin.tls_port, try_it=f"curl --cacert CA.pem {url}/stats")

    @property
    def _placeholder(self) -> str:
        """What stands before the host in a URL to try: a reminder where credentials are wanted."""
        return "" if credentials_of(self.settings).anonymous_allowed else "USER:PASSWORD@"

    def _allow_connections(self) -> None:
        wanted = self.settings.limits.connections_max + self.settings.http_connections_max
        if (possible := files.allow(wanted)) < wanted:
            # Nobody has chosen the default: then it is no news that this machine cannot have it.
            chosen = self.settings.limits.connections_max != Limits().connections_max
            (log.info if chosen else log.debug)(
                "few_files", connections=possible, connections_max=wanted,
                advice="the hard limit of open files is lower than the settings allow connections: see ulimit -Hn",
            )

    async def _drain(self) -> None:
        self._draining = True
        seconds = self.settings.limits.grace_seconds
        log.info("draining", connections=len(self.broker.clients), grace_seconds=seconds)
        drain = asyncio.ensure_future(self.listeners.drain(seconds, "the broker is shutting down; reconnect later"))
        at_once = asyncio.ensure_future(self._stop_now.wait())
        await asyncio.wait({drain, at_once}, return_when=asyncio.FIRST_COMPLETED)
        at_once.cancel()
        if not drain.done():
            drain.cancel()
            await asyncio.wait({drain})
            log.warning("stopped_at_once", reason="a second signal")
        elif late := drain.result():
            log.warning("grace_over", connections=late, reason="they did not read what they were still to get")

    def _on_stop_signal(self, name: str) -> None:
        if self._stopping.is_set():
            self._stop_now.set()
        log.info("signal", signal=name)
        self._stopping.set()

    def reload(self) -> None:
        """SIGHUP: read the settings, the password file and the certificate again. Wrong ones change nothing."""
        try:
            loaded = reload(self.settings)
            new = loaded.settings
            changes = reloadable_changes(self.settings, new)
            settings = apply_reload(self.settings, new)
            context = self._new_context(settings)
            metrics = metrics_access_of(settings)
            self.authenticator.reload(credentials_of(settings))
        except (SettingsError, PasswordFileError, TlsError, SecretFileError) as error:
            problems = error.problems if isinstance(error, SettingsError) else (error,)
            reason = "; ".join(map(str, problems))
            log.error("reload_failed", reason=reason, advice="the settings in force stay as they are")
            return
        for warning in loaded.warnings:
            log.warning("setting_ignored", reason=warning)
        self.settings = settings
        if self.tls is not None and context is not None:
            self.tls.use(context)
        self.broker.use(settings.limits)
        self.listeners.recheck()
        self.admin.gatekeeper.metrics = metrics
        self._allow_connections()
        logs.reconfigure(level=settings.log_level, burst_max=settings.log_burst_max)
        log.info(
            "reloaded", applied=[str(change) for change in changes.applied],
            needs_restart=[str(change) for change in changes.needs_restart], users=self.authenticator.users,
        )

    def _new_context(self, settings: Settings) -> ssl.SSLContext | None:
        """What new TLS connections shall use from now on, if there are any. Raises TlsError."""
        files_of_tls = tls_files_of(settings)
        if (files_of_tls is None) != (self.tls is None):
            raise TlsError("tls_certificate: TLS is turned on and off by a restart only; all else stays as it is, too")
        return tls.read(files_of_tls) if files_of_tls is not None else None

    def _summary(self) -> dict[str, int]:
        counters = self.inspection.counters()
        return {name: counters[name] for name in ("messages_in", "messages_out", "connections_accepted")}


def run(settings: Settings) -> int:
    """Run a broker until a signal stops it. Returns the exit code (config/exits.py). Raises CannotStart."""

    async def main() -> int:
        try:
            return await serve()
        finally:
            early.exit_decided()  # while the loop is still there to take a signal

    async def serve() -> int:
        try:
            application = Application(settings)
        except PasswordFileError as error:
            raise CannotStart(f"password_file: {error}", Exit.USAGE) from error
        except SecretFileError as error:
            raise CannotStart(f"metrics_token_file: {error}", Exit.USAGE) from error
        except (TlsError, PluginError, ArchiveUnusable) as error:
            raise CannotStart(str(error), Exit.USAGE) from error
        try:
            return await application.run()
        except CannotListen as error:
            raise CannotStart(str(error), Exit.UNAVAILABLE) from error

    return uvloop.run(main())


def credentials_of(settings: Settings) -> Credentials:
    return Credentials(
        password_file=settings.password_file,
        password=settings.password.reveal() if settings.password is not None else None,
        allow_anonymous=settings.allow_anonymous,
    )


def metrics_access_of(settings: Settings) -> MetricsAccess:
    """Raises SecretFileError."""
    file = settings.metrics_token_file
    return MetricsAccess(secret_in(file) if file is not None else None, settings.metrics_open)


def tls_files_of(settings: Settings) -> TlsFiles | None:
    """What TLS is made of; None if there is to be none."""
    if settings.tls_certificate is None:
        return None
    return TlsFiles(
        settings.tls_certificate, settings.tls_key, settings.tls_key_password_file, settings.tls_client_ca,
        settings.tls_client_certificates.value, settings.tls_version_min.value,
    )


def flush_fault(outbox: Outbox, error: Exception) -> None:
    """A fault of ours while an outbox was written to its socket: told once, with its traceback."""
    log.error("internal_error", client=str(outbox.owner), exc_info=error)
