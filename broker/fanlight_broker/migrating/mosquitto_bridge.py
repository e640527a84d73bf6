"""One `connection` of mosquitto.conf as a [[bridge]] ("Configuring Bridges" of mosquitto.conf(5)).

    topic PATTERN [[[out | in | both] QOS] LOCAL-PREFIX REMOTE-PREFIX]

A direction that is left out is out, and a QoS 0, as in mosquitto.
"""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from fanlight_broker.bridging.bridge_file import BridgeFileError, parse_bridges
from fanlight_broker.migrating.conf_lines import ConfLine
from fanlight_broker.migrating.converted import Converted, ConvertedFile, TomlCell, table

VERSIONS: Final = {"mqttv50": "5.0", "mqttv311": "3.1.1"}
FILES: Final = {
    "bridge_cafile": "tls_ca", "bridge_certfile": "tls_certificate", "bridge_keyfile": "tls_key",
}
TEXTS: Final = {
    "remote_clientid": "client_id", "clientid": "client_id", "remote_username": "user", "username": "user",
    "local_username": "local_user",
}
# What needs no line here: because it is so in any case, or because the bridge has no use for it.
NOT_NEEDED: Final = {
    "notifications": "$SYS/broker/bridge/NAME/state is always there", "try_private": "it is tried in 3.1.1",
    "notifications_local_only": "$SYS of this broker alone says it", "bridge_attempt_unsubscribe": "a reload does it",
    "local_password": "a bridge needs no password on its own broker", "local_cleansession": "see cleansession",
    "round_robin": "the addresses are tried in turn",
}
NO_EQUIVALENT: Final = {
    "bridge_capath": "name a file of CA certificates: tls_ca",
    "bridge_psk": "TLS with pre-shared keys is not supported",
    "bridge_identity": "TLS with pre-shared keys is not supported",
    "bridge_alpn": "no ALPN is sent",
    "bridge_bind_address": "the system chooses the local address", "bridge_require_ocsp": "OCSP is not asked",
    "bridge_tls_version": "1.2 and 1.3 are spoken", "bridge_max_topic_alias": "bridges use no aliases",
    "notification_topic": "it is $SYS/broker/bridge/NAME/state", "idle_timeout": "a bridge stays connected",
    "threshold": "a bridge stays connected", "local_clientid": "it is $bridge/NAME",
    "bridge_receive_maximum": "see window",
}


def convert(section: list[ConfLine], made: Converted) -> None:
    """Add the bridge of a section, whose first line is `connection`, to bridges.toml and what is beside it."""
    head, *lines = section
    name = head.value
    if not name or any(each in name for each in "/+#\\") or len(name) > 64:
        made.leave_out(head, "a name of 1 to 64 characters, without / + #; so the whole bridge is left out")
        return
    cells: dict[str, TomlCell] = {"name": name, "version": "3.1.1"}  # mosquitto's default
    routes: list[tuple[dict[str, TomlCell], str]] = []
    retains = True
    for line in lines:
        if line.name == "topic":
            _topic(line, routes, made)
        elif line.name in CONVERTERS:
            CONVERTERS[line.name](line, cells, made)
        elif line.name in FILES or line.name in TEXTS:
            cells[FILES.get(line.name) or TEXTS[line.name]] = line.value
        elif line.name in ("remote_password", "password"):
            file = f"{name}.password"
            made.files[file] = ConvertedFile(f"{line.value}\n", secret=True)
            cells["password_file"] = file
        elif line.name == "bridge_outgoing_retain":
            retains = line.value == "true"
        elif line.name in NOT_NEEDED:
            made.note(f"{line}: not needed, {NOT_NEEDED[line.name]}")
        else:
            made.leave_out(line, NO_EQUIVALENT.get(line.name, "no such option is known of a bridge"))
    if not retains:
        for route, place in routes:
            if route["direction"] != "in":
                route["retained"] = False
            if route["direction"] == "both":
                made.note(f"{place}: nothing is retained in either direction (bridge_outgoing_retain false)")
    _write(head, cells, routes, made)


def _topic(line: ConfLine, routes: list[tuple[dict[str, TomlCell], str]], made: Converted) -> None:
    try:
        words = shlex.split(line.value)
    except ValueError:
        words = []
    if not 1 <= len(words) <= 5:
        made.leave_out(line, "is not: topic PATTERN [direction [qos [local-prefix [remote-prefix]]]]")
        return
    pattern, direction, qos, local, remote = (*words, *("", "out", "0", "", "")[len(words) :])
    if direction not in ("in", "out", "both") or qos not in ("0", "1", "2"):
        made.leave_out(line, "its direction is in, out or both, and its QoS 0, 1 or 2")
        return
    if qos == "2":
        made.note(f"{line}: crosses with QoS 1, at least once")
    cells: dict[str, TomlCell] = {"filter": pattern, "direction": direction, "qos": min(int(qos), 1)}
    cells |= {
        key: prefix for key, prefix in (("local_prefix", local), ("remote_prefix", remote)) if prefix
    }
    routes.append((cells, line.place))


def _addresses(line: ConfLine, cells: dict[str, TomlCell], made: Converted) -> None:
    cells["address"] = [each if _has_port(each) else f"{each}:1883" for each in line.value.split()]


def _has_port(address: str) -> bool:
    return address.rpartition(":")[2].isdigit() and address.count(":") == 1


def _version(line: ConfLine, cells: dict[str, TomlCell], made: Converted) -> None:
    if line.value in VERSIONS:
        cells["version"] = VERSIONS[line.value]
    else:
        made.leave_out(line, "3.1.1 is spoken instead")


def _keep_alive(line: ConfLine, cells: dict[str, TomlCell], made: Converted) -> None:
    _whole(line, cells, made, "keep_alive_seconds")


def _packet_size(line: ConfLine, cells: dict[str, TomlCell], made: Converted) -> None:
    if line.value != "0":
        _whole(line, cells, made, "packet_bytes_max")


def _whole(line: ConfLine, cells: dict[str, TomlCell], made: Converted, key: str) -> None:
    if line.value.isdigit():
        cells[key] = int(line.value)
    else:
        made.leave_out(line, "is no number")


def _restart(line: ConfLine, cells: dict[str, TomlCell], made: Converted) -> None:
    """`restart_timeout SECONDS`, or `restart_timeout BASE CAP` with jitter."""
    words = line.value.split()
    if not words or not all(each.isdigit() and int(each) for each in words):
        made.leave_out(line, "is no number of seconds above 0")
        return
    cells["backoff_seconds_min"], cells["backoff_seconds_max"] = int(words[0]), int(words[-1])


def _clean(line: ConfLine, cells: dict[str, TomlCell], made: Converted) -> None:
    if line.value == "true":
        made.leave_out(line, "a bridge keeps its sessions; take qos = 0 for what must not wait")


def _start_type(line: ConfLine, cells: dict[str, TomlCell], made: Converted) -> None:
    if line.value != "automatic":
        made.leave_out(line, "a bridge connects at the start and stays connected")


def _insecure(line: ConfLine, cells: dict[str, TomlCell], made: Converted) -> None:
    if line.value == "true":
        made.leave_out(line, "certificates are always checked; tls_server_name says which name is expected")


CONVERTERS: Final[dict[str, Callable[[ConfLine, dict[str, TomlCell], Converted], None]]] = {
    "address": _addresses, "addresses": _addresses, "bridge_protocol_version": _version,
    "keepalive_interval": _keep_alive, "bridge_max_packet_size": _packet_size, "restart_timeout": _restart,
    "cleansession": _clean, "start_type": _start_type, "bridge_insecure": _insecure,
}


def _write(
    head: ConfLine, cells: dict[str, TomlCell], routes: list[tuple[dict[str, TomlCell], str]], made: Converted
) -> None:
    lines = table("bridge", cells, head.place)
    for route, place in routes:
        lines += table("bridge.route", route, place)
    text = "\n".join(lines) + "\n"
    try:
        parse_bridges(text, head.place, Path())
    except BridgeFileError as error:
        made.leave_out(head, f"the whole bridge: {error}")
        return
    before = made.files.get("bridges.toml")
    made.files["bridges.toml"] = ConvertedFile((before.text if before is not None else BEGINNING) + text)


BEGINNING: Final = """\
# Give this broker a name of its own, if there are several with bridges between them: docs/bridge.md, Loops.
# broker = "..."
"""


def rules_of(made: Converted) -> list[dict[str, Any]]:
    """What the bridges must be allowed to do here, as cells of [[allow]]: mosquitto's are asked no permission."""
    file = made.files.get("bridges.toml")
    if file is None:
        return []
    found = []
    for bridge in parse_bridges(file.text, "bridges.toml", Path()).bridges:
        rule: dict[str, Any] = {"user": bridge.local_user}
        out = [f"mqtt:{each.local_filter}" for each in bridge.routes if each.goes_out]
        back = [f"mqtt:{each.local_filter}" for each in bridge.routes if each.comes_in]
        rule |= {key: filters for key, filters in (("subscribe", out), ("publish", back)) if filters}
        found.append(rule)
    return found
