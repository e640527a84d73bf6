"""The settings of a broker: where it listens, who is admitted, how it logs, and its limits.

Each field is annotated with its unit, bounds and reason in the style of core/limits.py, whose `Limits`
are part of the settings. load.py reads them; checks.py has the rules between settings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from fanlight_broker.config.groups import (
    ACCESS,
    ARCHIVE,
    AUDIT,
    BRIDGES,
    HOOK,
    LOGS,
    PERMISSIONS,
    QUOTAS,
    RULES,
    SELECTORS,
    STORE,
    TLS,
    TOKENS,
)
from fanlight_broker.config.proxy_settings import ProxySettings
from fanlight_broker.config.tracing_settings import TracingSettings
from fanlight_broker.config.values import Secret
from fanlight_broker.core.limits import Durability, Limits, StoreDurability
from fanlight_broker.core.listening_port import ListeningPort
from fanlight_broker.core.setting import LISTENERS, Ge, Le, NeedsRestart, NoFlag, Reason, Unit
from fanlight_broker.protocols.amqp.settings import AmqpSettings
from fanlight_broker.protocols.mqtt.settings import MqttSettings
from fanlight_broker.protocols.native.settings import NativeSettings


class LogFormat(StrEnum):
    AUTO = "auto"  # text on a terminal, JSON otherwise
    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Tcp(StrEnum):
    AUTO = "auto"  # epoll where it is, which is on Linux
    EPOLL = "epoll"
    UVLOOP = "uvloop"


class Compression(StrEnum):
    NONE = "none"
    LZ4 = "lz4"
    ZSTD = "zstd"


class ClientCertificates(StrEnum):
    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"


class CertificateName(StrEnum):
    COMMON_NAME = "common_name"
    EMAIL = "email"
    DNS = "dns"
    URI = "uri"
    SUBJECT = "subject"


class TlsVersion(StrEnum):
    TLS_1_2 = "1.2"
    TLS_1_3 = "1.3"


@dataclass(frozen=True, slots=True)
class Sources:
    """Where settings are read from. Kept with them, so that SIGHUP can read them again."""

    flags: Mapping[str, str | bool] = field(default_factory=dict)  # by key
    environment: Mapping[str, str] = field(default_factory=dict)
    config: Path | None = None  # --config; FANLIGHT_CONFIG is looked for if it is None


@dataclass(frozen=True)
class Settings(
    ProxySettings,
    TracingSettings,
    AmqpSettings,
    MqttSettings,
    NativeSettings,
):
    """The settings of one broker. Immutable: a reload makes a new one.

    The bases are those of the protocols, the last one first on every page, and what is too much for this page.
    """

    tcp: Annotated[
        Tcp, LISTENERS, NeedsRestart(),
        Reason(
            "what reads and writes TCP connections, plain and with TLS: the broker's compiled poller (epoll, faster, "
            "on Linux), or uvloop's transports, which WebSocket always uses; auto takes the faster one"
        ),
    ] = Tcp.AUTO
    http: Annotated[
        bool, LISTENERS, NeedsRestart(), Reason("whether there is an HTTP listener: health, metrics, inspection")
    ] = True
    http_host: Annotated[
        str, LISTENERS, NeedsRestart(), Unit("address"),
        Reason(
            "where the HTTP listener is; any but a loopback address needs a password, only /healthz and /readyz "
            "do not"
        ),
    ] = "127.0.0.1"
    http_port: Annotated[
        int, LISTENERS, NeedsRestart(), Ge(0), Le(65_535), Unit("port"),
        Reason("TCP port of the HTTP listener; 0 takes a free one and logs it"),
    ] = 7421
    dashboard: Annotated[
        bool, LISTENERS, NeedsRestart(),
        Reason("whether browsers get the dashboard at / of the HTTP listener; what it shows asks for permissions"),
    ] = True
    http_connections_max: Annotated[
        int, LISTENERS, NeedsRestart(), Ge(1), Le(10_000), Unit("connections"),
        Reason("HTTP connections at once; a few scrapers and people, about 1 MiB each while a page is sent"),
    ] = 64
    http_requests_per_second_max: Annotated[
        int, LISTENERS, NeedsRestart(), Ge(1), Le(10_000), Unit("requests/s"),
        Reason("HTTP requests answered; one takes up to about 10 ms of the loop that routes messages"),
    ] = 50
    http_connection_seconds_max: Annotated[
        float, LISTENERS, NeedsRestart(), Ge(1), Le(3600), Unit("seconds"),
        Reason(
            "lifetime of an HTTP connection, so that slow ones cannot block the others; scrapers reconnect"
        ),
    ] = 60.0

    tls_certificate: Annotated[
        Path | None, TLS, Unit("path"),
        Reason("the broker's certificate, PEM, followed by the intermediate ones; it opens the TLS ports"),
    ] = None
    tls_key: Annotated[
        Path | None, TLS, Unit("path"),
        Reason("the certificate's private key, PEM; without it, the key is looked for in the certificate's file"),
    ] = None
    tls_key_password_file: Annotated[
        Path | None, TLS, Unit("path"), Reason("a file whose first line is the password of an encrypted key")
    ] = None
    tls_client_ca: Annotated[
        Path | None, TLS, Unit("path"),
        Reason("the CA certificates, PEM, that clients' certificates are checked against"),
    ] = None
    tls_client_certificates: Annotated[
        ClientCertificates, TLS,
        Reason(
            "whether clients present a certificate; a name in it (tls_client_name) is then the user, and no password "
            "is needed"
        ),
    ] = ClientCertificates.NONE
    tls_client_name: Annotated[
        CertificateName, TLS,
        Reason(
            "which name in a client's certificate is the user: its common name (else its first alternative name), its "
            "first alternative name of a kind, or the whole subject, as CN=a,O=b"
        ),
    ] = CertificateName.COMMON_NAME
    tls_client_groups: Annotated[
        str | None, TLS, Unit("patterns"),
        Reason(
            "groups of clients with a certificate, as pattern=group separated by semicolons; a * in the pattern stands "
            "for any characters of the user name"
        ),
    ] = None
    tls_client_crl: Annotated[
        Path | None, TLS, Unit("path"),
        Reason(
            "the revocation lists of the CAs of clients' certificates, PEM; a certificate whose CA has no current list "
            "there is refused"
        ),
    ] = None
    tls_version_min: Annotated[
        TlsVersion, TLS, Reason("the lowest version of TLS; 1.2 still has clients in small devices")
    ] = TlsVersion.TLS_1_2
    http_tls_host: Annotated[
        str | None, TLS, NeedsRestart(), Unit("address"), Reason("where HTTPS is; without it, http_host")
    ] = None
    http_tls_port: Annotated[
        int, TLS, NeedsRestart(), Ge(0), Le(65_535), Unit("port"),
        Reason("TCP port of HTTPS; 0 takes a free one and logs it"),
    ] = 7424

    users_file: Annotated[
        Path | None, ACCESS, Unit("path"),
        Reason(
            "users with their groups and limits, TOML, written by `fanlightd user`; with it, clients must log in"
        ),
    ] = None
    password_file: Annotated[
        Path | None, ACCESS, Unit("path"),
        Reason(
            "users and their argon2 hashes without groups, written by `fanlightd passwd`, instead of a users file"
        ),
    ] = None
    password: Annotated[
        Secret | None, ACCESS, NoFlag(),
        Reason(
            "one password for everybody, under any user name, instead of a password file; not together with "
            "password_file"
        ),
    ] = None
    allow_anonymous: Annotated[
        bool, ACCESS,
        Reason(
            "admit clients without credentials on any address; credentials that a client gives are still "
            "checked"
        ),
    ] = False
    token_keys_file: Annotated[
        Path | None, TOKENS, Unit("path"),
        Reason(
            "what tokens (JWT) are checked with: public keys in PEM, a JWKS, or a secret of 32 bytes or more; with it "
            "clients may log in with a token as their password. Needs the extra [jwt]"
        ),
    ] = None
    token_issuer: Annotated[
        str | None, TOKENS, Unit("text"), Reason("the claim iss that a token must have; without it, any")
    ] = None
    token_audience: Annotated[
        str | None, TOKENS, Unit("text"),
        Reason("what the claim aud of a token must be or contain; without it, only tokens without aud are accepted"),
    ] = None
    token_leeway_seconds: Annotated[
        float, TOKENS, Ge(0), Le(600), Unit("seconds"),
        Reason("by how much the clock of the issuer may be ahead or behind"),
    ] = 10.0
    token_user_claim: Annotated[
        str, TOKENS, Unit("claim"), Reason("the claim with the user name; a.b is b in the object a")
    ] = "sub"
    token_groups_claim: Annotated[
        str, TOKENS, Unit("claim"),
        Reason("the claim with the user's groups: a list, or one text with spaces between them"),
    ] = "groups"
    token_permissions_claim: Annotated[
        str, TOKENS, Unit("claim"),
        Reason("the claim with rules of permissions of the user's own: see docs/authentication.md"),
    ] = "permissions"
    token_limits_claim: Annotated[
        str, TOKENS, Unit("claim"), Reason("the claim with the user's limits: an object of whole numbers")
    ] = "limits"
    token_cache_max: Annotated[
        int, TOKENS, Ge(0), Le(1_000_000), Unit("tokens"),
        Reason("accepted tokens remembered until they expire (as keyed hashes), of up to 2 KiB each; 0: none"),
    ] = 10_000
    auth_url: Annotated[
        str | None, HOOK, Unit("URL"),
        Reason(
            "a service that is asked by POST who a client is, if its user is not in the users file; https, or http on "
            "this machine"
        ),
    ] = None
    auth_token_file: Annotated[
        Path | None, HOOK, Unit("path"),
        Reason("a file whose one line is sent to auth_url as Authorization: Bearer"),
    ] = None
    auth_timeout_seconds: Annotated[
        float, HOOK, Ge(0.01), Le(60), Unit("seconds"),
        Reason("how long an answer may take, a free connection included; below the handshake time"),
    ] = 3.0
    auth_requests_max: Annotated[
        int, HOOK, Ge(1), Le(10_000), Unit("logins"),
        Reason(
            "logins that wait for auth_url, at most a quarter of them from one address; further ones are refused. 64 "
            "requests are sent at a time"
        ),
    ] = 400
    auth_cache_seconds: Annotated[
        float, HOOK, Ge(0), Le(86_400), Unit("seconds"),
        Reason(
            "how long a decision is remembered, a refusal for 5 s at most; until then a user that was removed is let in"
        ),
    ] = 60.0
    auth_cache_max: Annotated[
        int, HOOK, Ge(0), Le(1_000_000), Unit("logins"),
        Reason("decisions that are remembered, under keyed hashes, at about 500 bytes each"),
    ] = 10_000
    metrics_token_file: Annotated[
        Path | None, ACCESS, Unit("path"),
        Reason(
            "a file whose one line is a token for /metrics alone, sent as Authorization: Bearer, so that Prometheus "
            "needs no user"
        ),
    ] = None
    metrics_open: Annotated[
        bool, ACCESS, Reason("let everybody who reaches the HTTP listener read /metrics, without token or credentials")
    ] = False
    password_threads: Annotated[
        int, ACCESS, NeedsRestart(), Ge(1), Le(64), Unit("threads"),
        Reason(
            "passwords checked concurrently; each takes 19 MiB and about 40 ms of a core that routing could use"
        ),
    ] = 2
    password_queue_max: Annotated[
        int, ACCESS, NeedsRestart(), Ge(1), Le(10_000), Unit("logins"),
        Reason(
            "logins waiting to be checked, at most a quarter of them from one address; addresses take turns. 100 take "
            "about 2.5 s, half the handshake time; further ones are refused"
        ),
    ] = 100
    password_delay_seconds_max: Annotated[
        float, ACCESS, NeedsRestart(), Ge(0), Le(60), Unit("seconds"),
        Reason(
            "longest wait of a login whose address, or user name from that address, has had consecutive wrong "
            "passwords; below the handshake time. 0: no delay"
        ),
    ] = 2.0
    password_cache_max: Annotated[
        int, ACCESS, NeedsRestart(), Ge(0), Le(1_000_000), Unit("logins"),
        Reason(
            "successful logins remembered (as keyed hashes), so that many clients can reconnect "
            "at the same time"
        ),
    ] = 10_000

    archive: Annotated[
        Path | None, ARCHIVE, NeedsRestart(), Unit("path"),
        Reason("the folder in which messages are archived; without it there is no archive"),
    ] = None
    archive_topics: Annotated[
        str, ARCHIVE, NeedsRestart(), Unit("filters"),
        Reason(
            "what is archived: filters separated by commas, in the native syntax, or in MQTT's after mqtt: ; "
            "wildcards do not match topics that begin with $"
        ),
    ] = "#"
    archive_durability: Annotated[
        Durability, ARCHIVE, NeedsRestart(),
        Reason(
            "when messages are synced to the disk: each batch, after archive_sync_seconds, or only when their "
            "segment is closed (none)"
        ),
    ] = Durability.INTERVAL
    archive_sync_seconds: Annotated[
        float, ARCHIVE, NeedsRestart(), Ge(0.001), Le(3600), Unit("seconds"),
        Reason("time between two syncs with durability interval; the most that a crash of the machine loses"),
    ] = 1.0
    archive_receipts: Annotated[
        bool, ARCHIVE, NeedsRestart(),
        Reason(
            "whether receipts and acknowledgements wait until the message is in the archive, as durably as "
            "archive_durability says; publishers that ask for one are held back while the buffer is full"
        ),
    ] = False
    archive_compression: Annotated[
        Compression, ARCHIVE, NeedsRestart(), Reason("of the batches in a segment; lz4 costs least, zstd saves most")
    ] = Compression.LZ4
    archive_index: Annotated[
        bool, ARCHIVE, NeedsRestart(),
        Reason("whether each closed segment gets an index of its topics, so that a replay reads only what can match"),
    ] = True
    archive_index_fields: Annotated[
        str | None, ARCHIVE, NeedsRestart(), Unit("names"),
        Reason(
            "fields whose numbers are indexed too, separated by commas, as selectors name them: price, "
            "payload.order.total; each message that has headers or a content type is read for them"
        ),
    ] = None

    data: Annotated[
        Path | None, STORE, NeedsRestart(), Unit("path"),
        Reason("the folder of the store; without it nothing survives a restart"),
    ] = None
    durability: Annotated[
        StoreDurability, STORE, NeedsRestart(),
        Reason(
            "what an acknowledgement waits for: that the disk has it (synced), that the operating system has it, which "
            "survives the end of the process but not of the machine (written), or nothing (memory)"
        ),
    ] = StoreDurability.SYNCED
    data_buffer_bytes_max: Annotated[
        int, STORE, NeedsRestart(), Ge(1 << 20), Le(16 << 30), Unit("bytes"),
        Reason("what waits for the disk; past it publishers that need the store are held back"),
    ] = 64 << 20
    data_segment_bytes: Annotated[
        int, STORE, NeedsRestart(), Ge(1 << 20), Le(1 << 30), Unit("bytes"),
        Reason("of a file of the store, which has three at least; a small disk needs smaller ones"),
    ] = 64 << 20
    data_pages_bytes_max: Annotated[
        int, STORE, NeedsRestart(), Ge(0), Le(1 << 50), Unit("bytes"),
        Reason("of a file for what waits in long queues that keep no journal (see queue_memory_bytes_max); 0: none"),
    ] = 4 << 30
    data_free_bytes_min: Annotated[
        int, STORE, Ge(0), Le(1 << 50), Unit("bytes"),
        Reason(
            "free space of the store's file system below which publishers that need the store are refused, as on a "
            "full disk, while consumers go on; 0: none"
        ),
    ] = 256 << 20

    payload_format: Annotated[
        str | None, SELECTORS, NeedsRestart(), Unit("filters"),
        Reason(
            "format of bodies without a content type: filter=json or filter=msgpack, separated by commas, the first "
            "that matches; filters in the native syntax, or in MQTT's after mqtt:"
        ),
    ] = None

    rules: Annotated[
        Path | None, RULES, Unit("path"),
        Reason("routing rules, TOML or CSV, read again on SIGHUP; `fanlightd rules check FILE` says what is wrong"),
    ] = None

    permissions: Annotated[
        Path | None, PERMISSIONS, Unit("path"),
        Reason("permissions, TOML or CSV, read again on SIGHUP; `fanlightd permissions check FILE` says what is wrong"),
    ] = None

    quotas: Annotated[
        Path | None, QUOTAS, Unit("path"),
        Reason("what each user or address may use, and how fast; TOML, read again on SIGHUP"),
    ] = None
    listeners: Annotated[
        Path | None, LISTENERS, NeedsRestart(), Unit("path"),
        Reason("further listeners of a protocol, with settings of their own, TOML: docs/listeners.md"),
    ] = None

    bridges: Annotated[
        Path | None, BRIDGES, Unit("path"),
        Reason("bridges to other brokers, TOML, read again on SIGHUP"),
    ] = None
    publish_interest: Annotated[
        bool, BRIDGES,
        Reason(
            "whether $SYS/broker/interest has the filters of all subscriptions, for bridges with only_wanted that "
            "bring messages here"
        ),
    ] = False
    audit_log: Annotated[
        Path | None, AUDIT, NeedsRestart(), Unit("path"),
        Reason("the file of the audit log; without it there is no audit log. SIGHUP opens it again"),
    ] = None
    audit_log_bytes_max: Annotated[
        int, AUDIT, NeedsRestart(), Ge(4096), Le(16 << 30), Unit("bytes"),
        Reason("size at which the file is renamed and a new one begun, some 300,000 logins"),
    ] = 64 << 20
    audit_log_files_max: Annotated[
        int, AUDIT, NeedsRestart(), Ge(1), Le(1000), Unit("files"),
        Reason("files that are kept, the present one included; the oldest is deleted"),
    ] = 8
    audit_log_queue_max: Annotated[
        int, AUDIT, NeedsRestart(), Ge(16), Le(1_000_000), Unit("lines"),
        Reason("lines that wait for the disk, 300 bytes or so each; further ones are lost, and counted"),
    ] = 10_000
    audit_topics: Annotated[
        bool, AUDIT, NeedsRestart(),
        Reason("whether notes, connections and subscriptions are published below $audit"),
    ] = False

    log_format: Annotated[
        LogFormat, LOGS, NeedsRestart(), Reason("auto is text on a terminal and JSON, one object a line, elsewhere")
    ] = LogFormat.AUTO
    log_level: Annotated[LogLevel, LOGS, Reason("least serious level that is logged")] = LogLevel.INFO
    log_burst_max: Annotated[
        int, LOGS, Ge(1), Le(1_000_000), Unit("lines"),
        Reason(
            "lines of one kind in 10 seconds; further ones are counted, and the count is on the next line "
            "of that kind"
        ),
    ] = 50
    log_queue_max: Annotated[
        int, LOGS, NeedsRestart(), Ge(16), Le(1_000_000), Unit("lines"),
        Reason(
            "lines waiting for a slow reader of the log, up to 4 KiB or so each; further ones are dropped "
            "and counted"
        ),
    ] = 10_000

    limits: Limits = field(default_factory=Limits)
    sources: Sources = field(default_factory=Sources, repr=False, compare=False)


def protocol_ports() -> list[ListeningPort]:
    """The ports that protocols may have: those that the bases of Settings declare."""
    return [port for base in reversed(Settings.__mro__) for port in vars(base).get("ports", ())]


def listener_durabilities(settings: object) -> dict[str, StoreDurability]:
    """The durability of each protocol that has one of its own, by the protocol's name."""
    found = {port.protocol: getattr(settings, f"{port.protocol}_durability", None) for port in protocol_ports()}
    return {name: durability for name, durability in found.items() if durability is not None}
