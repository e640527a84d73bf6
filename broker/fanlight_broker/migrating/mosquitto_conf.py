"""mosquitto.conf as Fanlight's settings and the files beside them (mosquitto.conf(5), of 2.0).

    lines --> of the broker, of each `listener`, of each `connection` --> settings, permissions.toml, users.toml, ...

Each option is converted, or is in NOT_NEEDED with what is so anyway, or is left out with a reason. A line that only
restates a default says nothing.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fanlight_broker.auth import password_file
from fanlight_broker.auth.files import PasswordFileError
from fanlight_broker.config import keys
from fanlight_broker.migrating import mosquitto_bridge
from fanlight_broker.migrating.conf_files import ConfError, ConfFiles
from fanlight_broker.migrating.conf_lines import ConfLine, read
from fanlight_broker.migrating.converted import Converted, ConvertedFile, table, toml
from fanlight_broker.permitting.import_mosquitto import import_acl

OF_LISTENERS: Final = {
    "certfile", "keyfile", "cafile", "protocol", "require_certificate", "use_identity_as_username", "crlfile",
    "use_subject_as_username", "tls_version", "capath", "ciphers", "ciphers_tls1.3", "dhparamfile", "mount_point",
    "http_dir", "psk_hint", "socket_domain", "bind_interface", "tls_engine", "tls_engine_kpass_sha1", "tls_keyform",
    "use_username_as_clientid", "max_connections",
}
NOT_NEEDED: Final = {
    "autosave_interval": "the store has a message before it is acknowledged", "persistence_file": "see data",
    "autosave_on_changes": "the store has a message before it is acknowledged", "set_tcp_nodelay": "always so",
    "allow_zero_length_clientid": "always so", "connection_messages": "the log has them", "log_timestamp": "always so",
    "log_timestamp_format": "always ISO 8601", "log_facility": "the log goes to the standard output",
    "user": "the service manager runs it as its own user", "pid_file": "the service manager knows it",
    "check_retain_source": "see recheck of permissions", "websockets_log_level": "see log_level",
    "websockets_headers_size": "8 KiB", "upgrade_outgoing_qos": "off, which is the default",
}
NO_EQUIVALENT: Final = {
    "capath": "name a file of CA certificates: tls_client_ca", "ciphers": "Python's choice is used",
    "ciphers_tls1.3": "Python's choice is used", "dhparamfile": "Python's choice is used",
    "psk_file": "TLS with pre-shared keys is not supported", "psk_hint": "TLS with pre-shared keys is not supported",
    "mount_point": "see namespaces, docs/namespaces.md", "http_dir": "files are not served",
    "socket_domain": "give an address of the family", "bind_interface": "give the interface's address",
    "use_username_as_clientid": "client identifiers stay as they are",
    "auth_plugin": "tokens, or a service that is asked (auth_url): docs/authentication.md",
    "plugin": "tokens, or a service that is asked (auth_url): docs/authentication.md",
    "clientid_prefixes": "rules of permissions may name a client", "auto_id_prefix": "it is auto-",
    "memory_limit": "each kind of state has a limit: docs/state.md",
    "max_inflight_bytes": "a window is of messages: inflight_messages_max",
    "queue_qos0_messages": "QoS 0 does not wait for a client that is away",
}
SECONDS: Final = {"h": 3_600, "d": 86_400, "w": 7 * 86_400, "m": 30 * 86_400, "y": 365 * 86_400}
UNLIMITED: Final = {"queue_messages_max", "queue_bytes_max", "inflight_messages_max", "frame_bytes_max"}  # by a 0
HEAD_BYTES: Final = 65_536  # of a packet, beside the payload that message_size_limit bounds
NUMBERS: Final = {
    "max_queued_messages": "queue_messages_max", "max_queued_bytes": "queue_bytes_max",
    "max_inflight_messages": "inflight_messages_max", "message_size_limit": "frame_bytes_max",
    "max_packet_size": "frame_bytes_max", "max_keepalive": "mqtt_keep_alive_max",
    "sys_interval": "sys_interval_seconds",
    "max_qos": "mqtt_maximum_qos", "max_topic_alias": "mqtt_topic_alias_max",
}
VERSIONS: Final = {"tlsv1.2": "1.2", "tlsv1.3": "1.3"}


EVERYWHERE: Final = "0.0.0.0"


@dataclass(slots=True)
class MosquittoListener:
    head: ConfLine | None  # None: that of `port`, or of no line at all
    port: int
    host: str = EVERYWHERE
    options: dict[str, ConfLine] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return self.head.place if self.head is not None else "mosquitto's default"

    def value(self, name: str) -> str:
        return self.options[name].value if name in self.options else ""


def convert(files: ConfFiles, name: str) -> Converted:
    """The configuration of this name, with the files that it names. Raises ConfError."""
    made = Converted(name)
    made.note("The stored messages of mosquitto are not read: let its clients drain them first.")
    broker: list[ConfLine] = []
    listeners: list[MosquittoListener] = []
    bridges: list[list[ConfLine]] = []
    default: MosquittoListener | None = None
    for line in read(files, name):
        if line.name == "connection":
            bridges.append([line])
        elif line.name == "listener":
            if (found := _listener(line, made)) is not None:
                listeners.append(found)
        elif line.name in ("port", "bind_address"):
            default = _default_listener(line, default, made)
        elif bridges and line.name not in OF_BROKER and line.name not in OF_LISTENERS:
            bridges[-1].append(line)
        elif line.name in OF_LISTENERS and (listeners or default is not None or line.name != "max_connections"):
            if not listeners and default is None:
                default = MosquittoListener(None, 1883)
            target = listeners[-1] if listeners else default
            assert target is not None
            target.options[line.name] = line
        else:
            broker.append(line)
    if default is not None:
        listeners.insert(0, default)
    _broker(broker, files, made)
    _listeners(listeners, made)
    for section in bridges:
        mosquitto_bridge.convert(section, made)
    if "bridges.toml" in made.files:
        made.set("bridges", "bridges.toml", "")
    _permit_bridges(made)
    return made


def _listener(line: ConfLine, made: Converted) -> MosquittoListener | None:
    port, *host = line.value.split()
    if not port.isdigit() or not 0 < int(port) < 65_536:
        made.leave_out(line, "only TCP ports are listened on")
        return None
    return MosquittoListener(line, int(port), host[0] if host else EVERYWHERE)


def _default_listener(line: ConfLine, default: MosquittoListener | None, made: Converted) -> MosquittoListener:
    found = default or MosquittoListener(line, 1883)
    if line.name == "bind_address":
        found.host = line.value
    elif line.value.isdigit():
        found.port = int(line.value)
    else:
        made.leave_out(line, "is no port")
    return found


# -- of the broker ----------------------------------------------------------------------------------------------------


def _broker(lines: Iterable[ConfLine], files: ConfFiles, made: Converted) -> None:
    anonymous: ConfLine | None = None
    persistence, location = False, ""
    for line in lines:
        if line.name in NUMBERS:
            _number(line, NUMBERS[line.name], made)
        elif line.name == "max_connections":
            _connections(line, made)
        elif line.name == "allow_anonymous":
            anonymous = line
        elif line.name == "persistence":
            persistence = line.value == "true"
        elif line.name == "persistence_location":
            location = line.place
        elif line.name in CONVERTERS:
            CONVERTERS[line.name](line, files, made)
        elif line.name in NOT_NEEDED:
            made.note(f"{line}: not needed, {NOT_NEEDED[line.name]}")
        elif line.name in NO_EQUIVALENT:
            made.leave_out(line, NO_EQUIVALENT[line.name])
        else:
            made.leave_out(line, "no such option of mosquitto 2.0 is known")
    if "frame_bytes_max" not in made.settings:
        made.note("A message is bounded by frame_bytes_max, 1 MiB unless set; in mosquitto it is 256 MiB.")
    if persistence:
        made.set("data", "data", location or "persistence true; a folder of its own, not mosquitto's")
    if anonymous is not None and anonymous.value == "true":
        made.set("allow_anonymous", True, anonymous.place)
    elif "users_file" not in made.settings:
        made.note("Nobody may log in from another machine: there is neither allow_anonymous nor a password_file.")


def _number(line: ConfLine, key: str, made: Converted) -> None:
    if not line.value.isdigit():
        made.leave_out(line, "is no number")
        return
    number, bounds = int(line.value), keys()[key]
    assert bounds.least is not None
    assert bounds.most is not None
    if number == 0 and key in UNLIMITED:
        number = int(bounds.most)
    elif line.name == "message_size_limit":
        number += HEAD_BYTES
    within = int(min(max(number, bounds.least), bounds.most))
    if within != number:
        made.note(f"{line}: {key} is {bounds.bounds()}")
    made.set(key, within, line.place)


def _connections(line: ConfLine, made: Converted) -> None:
    if line.value not in ("-1", "0"):
        _number(line, "connections_max", made)


def _expiration(line: ConfLine, files: ConfFiles, made: Converted) -> None:
    number, unit = line.value[:-1], line.value[-1:]
    if number.isdigit() and unit in SECONDS:
        made.set("session_seconds_max", int(number) * SECONDS[unit], line.place)
    else:
        made.leave_out(line, "is no time such as 14d")


def _passwords(line: ConfLine, files: ConfFiles, made: Converted) -> None:
    try:
        hashes = password_file.parse(files.text(line.value), line.value)
    except (ConfError, PasswordFileError) as error:
        made.leave_out(line, f"{error}; `fanlightd user import users.toml {line.value}` takes it over later")
        return
    rows = [f"[users.{toml(user)}]\npassword = {toml(hash)}\n" for user, hash in hashes.items()]
    made.files["users.toml"] = ConvertedFile("\n".join(rows), secret=True)
    made.set("users_file", "users.toml", f"{line.place}; with the hashes that are there")


def _acl(line: ConfLine, files: ConfFiles, made: Converted) -> None:
    try:
        imported = import_acl(files.text(line.value).split("\n"), Path(line.value).name)
    except ConfError as error:
        made.leave_out(line, f"{error}; `fanlightd permissions import mosquitto FILE` converts it later")
        return
    made.left_out += imported.left_out
    made.files["permissions.toml"] = ConvertedFile(imported.toml())
    made.set("permissions", "permissions.toml", line.place)
    made.note("With permissions the HTTP views need a rule: [[allow]] group = ..., admin = \"read\".")


def _permit_bridges(made: Converted) -> None:
    file = made.files.get("permissions.toml")
    if file is None:
        return
    for rule in mosquitto_bridge.rules_of(made):
        file.text += "\n".join(table("allow", rule, "a bridge, which mosquitto asks no permission")) + "\n"


def _retain(line: ConfLine, files: ConfFiles, made: Converted) -> None:
    if line.value == "false":
        made.set("retained_messages_max", 0, line.place)


def _log_type(line: ConfLine, files: ConfFiles, made: Converted) -> None:
    if line.value in ("debug", "all", "subscribe", "unsubscribe", "websockets"):
        made.note(f"{line}: log_level = \"debug\" has more than info")


def _log_dest(line: ConfLine, files: ConfFiles, made: Converted) -> None:
    if line.value not in ("stdout", "stderr", "none"):
        made.leave_out(line, "the log goes to the standard output, which the service manager keeps")


def _per_listener(line: ConfLine, files: ConfFiles, made: Converted) -> None:
    if line.value == "true":
        made.leave_out(line, "users and permissions are for all listeners; rules of permissions may name a listener")


CONVERTERS: Final[dict[str, Callable[[ConfLine, ConfFiles, Converted], None]]] = {
    "persistent_client_expiration": _expiration, "password_file": _passwords, "acl_file": _acl,
    "retain_available": _retain, "log_type": _log_type, "log_dest": _log_dest, "per_listener_settings": _per_listener,
}
OF_BROKER: Final = {
    *NUMBERS, *CONVERTERS, *NOT_NEEDED, *(NO_EQUIVALENT.keys() - OF_LISTENERS), "allow_anonymous", "persistence",
    "persistence_location",
}


# -- of listeners -----------------------------------------------------------------------------------------------------


def _listeners(found: list[MosquittoListener], made: Converted) -> None:
    if not found:
        made.note("There is no listener: as in mosquitto, clients of this machine alone connect, without a password.")
        found = [MosquittoListener(None, 1883, "127.0.0.1")]
        made.settings.pop("allow_anonymous", None)
    taken: set[str] = set()
    for listener in found:
        tls, websocket = "certfile" in listener.options, listener.value("protocol") == "websockets"
        name = "mqtt" + "_websocket" * websocket + "_tls" * tls
        what = listener.head or f"listener {listener.port}"
        if name in taken:
            made.leave_out(what, f"there is a listener of this kind already ({name}_port)")
            continue
        taken.add(name)
        made.set(f"{name}_port", listener.port, listener.place)
        _host(listener, "mqtt_tls_host" if tls else "mqtt_host", made)
        _options(listener, made)
    if "mqtt" not in taken:
        made.note("MQTT without TLS stays open for this machine alone, at mqtt_port.")
        if "mqtt_host" not in made.settings:
            made.set("mqtt_host", "127.0.0.1", "")
    if not taken & {"mqtt_websocket", "mqtt_websocket_tls"}:
        made.set("mqtt_websocket", False, "no listener with protocol websockets")


def _host(listener: MosquittoListener, key: str, made: Converted) -> None:
    known = made.settings.get(key)
    if known is not None and known[0] != listener.host:
        made.leave_out(listener.head or listener.place, f"its address: {key} is {known[0]} for all of them")
    else:
        made.set(key, listener.host, listener.place)


def _options(listener: MosquittoListener, made: Converted) -> None:
    name_from_certificate = any(
        listener.value(name) == "true" for name in ("use_identity_as_username", "use_subject_as_username")
    )
    asks_certificates = listener.value("require_certificate") == "true"
    for name, line in listener.options.items():
        if name in ("cafile", "crlfile") and not asks_certificates:
            made.note(f"{line}: not needed, no client has to show a certificate")
        elif name in LISTENER_FILES:
            known = made.settings.get(LISTENER_FILES[name])
            if known is not None and known[0] != line.value:
                made.leave_out(line, f"one for all listeners: {LISTENER_FILES[name]} is {known[0]}")
            else:
                made.set(LISTENER_FILES[name], line.value, line.place)
                if not Path(line.value).is_absolute():
                    made.note(f"{line}: looked for beside fanlight.toml")
        elif name == "require_certificate":
            if line.value == "true":
                made.set("tls_client_certificates", "required", line.place)
                if not name_from_certificate:
                    made.leave_out(line, "here the name in the certificate is the user, who needs no password then")
        elif name == "use_subject_as_username" and line.value == "true":
            made.set("tls_client_name", "subject", line.place)
        elif name == "tls_version" and line.value in VERSIONS:
            made.set("tls_version_min", VERSIONS[line.value], line.place)
        elif name == "max_connections":
            _connections(line, made)
        elif name in ("protocol", "use_identity_as_username", "use_subject_as_username"):
            if name == "protocol" and line.value not in ("mqtt", "websockets"):
                made.leave_out(line, "is mqtt or websockets")
        else:
            made.leave_out(line, NO_EQUIVALENT.get(name, "no equivalent"))


LISTENER_FILES: Final = {
    "certfile": "tls_certificate", "keyfile": "tls_key", "cafile": "tls_client_ca", "crlfile": "tls_client_crl",
}
