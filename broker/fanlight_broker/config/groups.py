"""The groups of settings, as the flags and docs/configuration.md introduce them."""

from fanlight_broker.core.setting import SettingGroup

TLS = SettingGroup(
    "TLS",
    """\
With a certificate the broker also listens with TLS: on `native_tls_port` for native clients, on `mqtt_tls_port` for
MQTT, on `http_tls_port` for HTTPS. The plain ports stay open; by default they are on the loopback address.
[tls.md](tls.md) shows how to make certificates, require them of clients and renew them.""",
)
ACCESS = SettingGroup(
    "Access",
    """\
A listener on a loopback address (`127.0.0.1`, `::1`, `localhost`) admits anonymous clients. For any other address the
broker requires a users file, a password file, `FANLIGHT_PASSWORD` or an explicit `--allow-anonymous`, and does not
start without one of them. Once there is a password, loopback clients need it too: behind a proxy or an SSH tunnel
every client is a loopback client. The HTTP listener requires the same credentials, by Basic authentication, for
everything but `/healthz` and `/readyz`; `/metrics` may have a token of its own, or be open.

A password that a client gives is checked, also where anonymous clients are admitted. A broker that has nothing to check
it against admits the client as an anonymous one; its user name is then only a label. With `FANLIGHT_PASSWORD` any user
name is valid with the one password. [access.md](access.md) has all cases; [authentication.md](authentication.md) has
the users file and the other ways to say who a client is.

`FANLIGHT_PASSWORD_FILE` names a password file, or a file that holds nothing but the one password for everybody (one
line without a colon), as Docker and Kubernetes hand secrets to a container.

A client with a certificate that `tls_client_ca` has signed needs no password (see TLS). A password that it gives is
checked all the same. TLS changes nothing else about who is admitted.""",
)
TOKENS = SettingGroup(
    "Tokens",
    """\
A client may log in with a token (JWT) in place of a password, signed by an identity provider or by an application of
your own. The connection ends when the token expires. [authentication.md](authentication.md#tokens-jwt) says more.""",
)
HOOK = SettingGroup(
    "Authentication service",
    """\
An HTTP service of your own can decide who a client is: `auth_url` gets the credentials by POST and answers with a
decision, groups and limits. If there is no sound answer the client is refused.
[authentication.md](authentication.md#http-hook) has the JSON.""",
)
ARCHIVE = SettingGroup(
    "Archive",
    """\
With `archive` the broker stores messages in a folder, as Arrow IPC segments; this needs the extra `[archive]`. The
sizes and times that bound the archive are under Limits. [archive.md](archive.md) says what is promised.""",
)
STORE = SettingGroup(
    "Store",
    """\
With `data` the broker keeps in a folder what must survive a restart: sessions that outlive their connection, with their
subscriptions, queued messages and messages in flight; retained messages; and the marks of producers. Without it all of
this is in memory only. One broker may use a folder at a time.""",
)
SELECTORS = SettingGroup(
    "Selectors",
    """\
A selector on `payload.name` reads bodies in JSON or msgpack. Which of the two a body is, its content type says
(`application/json`, `application/...+json`, `application/msgpack`, `application/x-msgpack`,
`application/vnd.msgpack`): the property of MQTT 5, the header `content-type` of a native message. `payload_format` says
it for messages without a content type. A body of another content type has no fields, and so has one that is not sound,
is longer than 64 KiB, or has more than 8 maps and lists inside each other.""",
)
AUDIT = SettingGroup(
    "Audit log",
    """\
With `audit_log` the broker writes who came in, who was refused and why, and who changed what, as JSON lines. The file
is rotated by size. [authentication.md](authentication.md#audit-log) has the kinds of lines. With `audit_topics` they
are messages as well, below `$audit`, with connections and subscriptions, so that an archive can say who got a
message: [archive.md](archive.md#who-got-it).""",
)
RULES = SettingGroup(
    "Routing rules",
    """\
A file of rules says what the broker does with a message beside delivering it on its topic: copy it to another topic,
send it there instead, set a header, drop, archive or delay it. [rules.md](rules.md) has all of it.""",
)
PERMISSIONS = SettingGroup(
    "Permissions",
    """\
A file of permissions says who may do what on which topics. Without one everybody who is admitted may do everything;
with one, what no rule allows is denied. [permissions.md](permissions.md) has all of it.""",
)
QUOTAS = SettingGroup(
    "Quotas",
    """\
A file of quotas says what each user or address may use, and how fast it may publish. Without one everybody has a share
of each pot, and no rate. [quotas.md](quotas.md) has all of it.""",
)
BRIDGES = SettingGroup(
    "Bridges",
    """\
A file of bridges says which messages go to another broker and come from it, and how it is reached.
[bridge.md](bridge.md) has all of it.""",
)
TRACING = SettingGroup(
    "Tracing",
    """\
With `trace_endpoint` the broker sends spans of some messages, by OpenTelemetry; this needs the extra `[otel]`. Trace
contexts pass through the broker in any case, as headers do. [tracing.md](tracing.md) says more.""",
)
LOGS = SettingGroup(
    "Logs",
    """\
Logs are written to the standard output, one event a line. Payloads, passwords and headers of messages are never
logged.""",
)
