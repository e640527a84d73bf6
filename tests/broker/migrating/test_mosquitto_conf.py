"""mosquitto.conf converted: each option is taken over, needs no line, or has no equivalent, which is said."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from fanlight_broker.cli import main
from fanlight_broker.config import Sources, keys, load
from fanlight_broker.migrating.conf_files import ConfError, FilesOnDisk, FilesSent
from fanlight_broker.migrating.converted import Converted
from fanlight_broker.migrating.mosquitto_conf import convert

HASH = (
    "$7$101$mwTpsfYTIpnXuBmN$j8Khjou3izgJbfAMHsSqi3pfSVlhkbUdUy6ZfbfLKs5OJyBo1lYBYPWQ3SPuVGjbX2Kl3Ddr8g4x2a4JAKWapQ=="
)


def converted(folder: Path, text: str, **files: str) -> Converted:
    """files: beside it"""
    for name, content in files.items():
        (folder / name).write_text(content)
    (folder / "mosquitto.conf").write_text(text)
    return convert(FilesOnDisk(folder), "mosquitto.conf")


def settings(made: Converted) -> dict[str, Any]:
    found = tomllib.loads(made.settings_text())
    assert found.keys() <= keys().keys()
    return found


def test_a_gateway_with_all_that_is_usual(tmp_path: Path) -> None:
    made = converted(tmp_path, GATEWAY, passwd=f"alice:{HASH}\n", acl="user alice\ntopic home/#\n")
    assert settings(made) == {
        "queue_messages_max": 100_000_000, "inflight_messages_max": 100, "session_seconds_max": 14 * 86_400,
        "frame_bytes_max": 262_144 + 65_536, "users_file": "users.toml", "permissions": "permissions.toml",
        "data": "data", "mqtt_port": 1883, "mqtt_host": "127.0.0.1", "mqtt_tls_port": 8883, "mqtt_tls_host": "0.0.0.0",
        "tls_certificate": "/c/server.crt", "tls_key": "/c/server.key", "tls_client_ca": "/c/ca.crt",
        "tls_client_certificates": "required", "mqtt_websocket_port": 9001, "bridges": "bridges.toml",
    }
    assert made.left_out == [
        "mosquitto.conf, line 5: log_dest syslog: the log goes to the standard output, which the service manager keeps",
        "mosquitto.conf, line 20: ciphers HIGH: Python's choice is used",
    ]
    assert tomllib.loads(made.files["users.toml"].text) == {"users": {"alice": {"password": HASH}}}
    assert made.files["users.toml"].secret
    assert made.files["cloud.password"].text == "geheim\n"
    assert made.files["cloud.password"].secret
    assert "geheim" not in made.settings_text() + made.files["bridges.toml"].text
    allowed = tomllib.loads(made.files["permissions.toml"].text)["allow"]
    assert allowed[-1] == {
        "user": "bridge:cloud", "subscribe": ["mqtt:sensors/#"], "publish": ["mqtt:commands/#", "mqtt:clock"],
    }
    assert tomllib.loads(made.files["bridges.toml"].text) == {"bridge": [{
        "name": "cloud", "version": "5.0", "address": ["mqtt.example.com:8883", "10.0.0.2:1883"], "tls_ca": "/c/ca.pem",
        "client_id": "site-7", "user": "site7", "password_file": "cloud.password", "backoff_seconds_min": 5,
        "backoff_seconds_max": 60, "keep_alive_seconds": 30, "route": [
            {"filter": "sensors/#", "direction": "out", "qos": 1, "remote_prefix": "site/7/"},
            {"filter": "commands/#", "direction": "in", "qos": 1, "remote_prefix": "site/7/"},
            {"filter": "", "direction": "in", "qos": 0, "local_prefix": "clock", "remote_prefix": "site/time"},
        ],
    }]}


GATEWAY = """\
# Gateway of site 7
persistence true
persistence_location /var/lib/mosquitto/
autosave_interval 300
log_dest syslog
max_queued_messages 0
max_inflight_messages 100
persistent_client_expiration 14d
message_size_limit 262144
allow_anonymous false
password_file passwd
acl_file acl
listener 1883 127.0.0.1
listener 8883
certfile /c/server.crt
keyfile /c/server.key
cafile /c/ca.crt
require_certificate true
use_identity_as_username true
ciphers HIGH
listener 9001 127.0.0.1
protocol websockets

connection cloud
addresses mqtt.example.com:8883 10.0.0.2
bridge_cafile /c/ca.pem
bridge_insecure false
bridge_protocol_version mqttv50
remote_clientid site-7
remote_username site7
remote_password geheim
cleansession false
start_type automatic
restart_timeout 5 60
notifications true
keepalive_interval 30
topic sensors/# out 1 "" site/7/
topic commands/# in 2 "" site/7/
topic "" in 0 clock site/time
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {"mqtt_port": 1883, "mqtt_host": "127.0.0.1", "mqtt_websocket": False}),
        ("listener 1884\nallow_anonymous true",
         {"allow_anonymous": True, "mqtt_port": 1884, "mqtt_host": "0.0.0.0", "mqtt_websocket": False}),
        ("port 1885\nbind_address 10.0.0.1\nmax_connections 50\nallow_anonymous true",
         {"allow_anonymous": True, "mqtt_port": 1885, "mqtt_host": "10.0.0.1", "connections_max": 50,
          "mqtt_websocket": False}),
        ("retain_available false\nmax_qos 1\nsys_interval 0\nmax_keepalive 60\nmax_connections -1",
         {"retained_messages_max": 0, "mqtt_maximum_qos": 1, "sys_interval_seconds": 0, "mqtt_keep_alive_max": 60,
          "mqtt_port": 1883, "mqtt_host": "127.0.0.1", "mqtt_websocket": False}),
        ("listener 8883 10.0.0.1\ncertfile c\nkeyfile k\ncafile a\ntls_version tlsv1.3",
         {"mqtt_tls_port": 8883, "mqtt_tls_host": "10.0.0.1", "tls_certificate": "c", "tls_key": "k",
          "tls_version_min": "1.3", "mqtt_host": "127.0.0.1", "mqtt_websocket": False}),
        ("max_packet_size 999999999",
         {"frame_bytes_max": 64 << 20, "mqtt_port": 1883, "mqtt_host": "127.0.0.1", "mqtt_websocket": False}),
    ],
)
def test_settings(text: str, expected: dict[str, object], tmp_path: Path) -> None:
    made = converted(tmp_path, text)
    assert settings(made) == expected
    assert made.left_out == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("listener 0 /run/mosquitto.sock", "line 1: listener 0 /run/mosquitto.sock: only TCP ports"),
        ("listener 1883\nlistener 1884", "line 2: listener 1884: there is a listener of this kind already (mqtt_port)"),
        ("listener 1883 10.0.0.1\nlistener 9001\nprotocol websockets", "mqtt_host is 10.0.0.1 for all of them"),
        ("listener 1883\nmount_point a/", "line 2: mount_point a/: see namespaces"),
        ("listener 8883\ncertfile c\nrequire_certificate true", "line 3: require_certificate true: here the name"),
        ("psk_file p", "line 1: psk_file p: TLS with pre-shared keys"),
        ("plugin /x.so", "line 1: plugin /x.so: tokens"),
        ("per_listener_settings true", "line 1: per_listener_settings true: users and permissions"),
        ("password_file none", "none: cannot be read"),
        ("acl_file none", "none: cannot be read"),
        ("max_qos x", "line 1: max_qos x: is no number"),
        ("persistent_client_expiration x", "is no time such as 14d"),
        ("frobnicate 1", "line 1: frobnicate 1: no such option of mosquitto 2.0 is known"),
        ("topic a out", "line 1: topic a out: no such option"),
        ("connection a/b\naddress h\ntopic a", "line 1: connection a/b: a name"),
        ("connection a\ntopic a", "line 1: connection a: the whole bridge: "),
        ("connection a\naddress h\ntopic a up", "line 3: topic a up: its direction"),
        ("connection a\naddress h\ntopic a\ntopic \"", "line 4: topic \": is not: topic PATTERN"),
        ("connection a\naddress h\ntopic a\ncleansession true", "line 4: cleansession true: a bridge keeps"),
        ("connection a\naddress h\ntopic a\nstart_type lazy", "line 4: start_type lazy: a bridge connects"),
        ("connection a\naddress h\ntopic a\nbridge_insecure true", "line 4: bridge_insecure true: certificates"),
        ("connection a\naddress h\ntopic a\nbridge_psk 0a", "line 4: bridge_psk ...: TLS with pre-shared"),
        ("connection a\naddress h\ntopic a\nbridge_protocol_version mqttv31", "3.1.1 is spoken instead"),
        ("connection a\naddress h\ntopic a\nrestart_timeout x", "is no number of seconds"),
        ("connection a\naddress h\ntopic a\nfrobnicate 1", "line 4: frobnicate 1: no such option is known of a bridge"),
    ],
)
def test_what_has_no_equivalent_is_said_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    made = converted(tmp_path, text)
    assert said in "\n".join(made.left_out)
    assert said in made.settings_text().replace("\\", "")
    settings(made)


def test_a_bridge_with_defaults_is_as_mosquittos(tmp_path: Path) -> None:
    """3.1.1, port 1883, out, QoS 0; without retained messages if it says so."""
    made = converted(
        tmp_path, "connection a\naddress h\nbridge_outgoing_retain false\ntopic x/#\ntopic y both\ntopic z in\n"
        "connection b\naddress [::1]\nlocal_username me\ntopic x\n"
    )
    first, second = tomllib.loads(made.files["bridges.toml"].text)["bridge"]
    assert (first["address"], first["version"]) == (["h:1883"], "3.1.1")
    assert [(each["direction"], each["qos"], each.get("retained", True)) for each in first["route"]] == [
        ("out", 0, False), ("both", 0, False), ("in", 0, True),
    ]
    assert second["local_user"] == "me"
    assert made.left_out == []


def test_files_are_included_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "b.conf").write_text("listener 1884\n")
    (tmp_path / "conf.d" / "a.conf").write_text("max_qos 1\nwhat\n")
    (tmp_path / "conf.d" / "c.txt").write_text("what\n")
    made = converted(tmp_path, "include_dir conf.d\nallow_anonymous true\n")
    assert settings(made)["mqtt_port"] == 1884
    assert made.left_out == ["a.conf, line 2: what: no such option of mosquitto 2.0 is known"]
    with pytest.raises(ConfError, match="is no folder"):
        converted(tmp_path, "include_dir none")
    with pytest.raises(ConfError, match="files are included"):
        converted(tmp_path, "include_dir .")
    with pytest.raises(ConfError, match="cannot be read"):
        convert(FilesOnDisk(tmp_path), "none")


def test_files_that_are_sent_are_found_by_their_names_and_no_file_of_this_machine_is(tmp_path: Path) -> None:
    (tmp_path / "acl").write_text("topic secret/#\n")
    text = f"include_dir /etc/mosquitto/conf.d\npassword_file /etc/passwd\nacl_file {tmp_path}/acl\n"
    sent = {"mosquitto.conf": text, "a.conf": "max_qos 1\n", "acl": "topic home/#\n"}
    made = convert(FilesSent(sent, "mosquitto.conf"), "mosquitto.conf")
    assert settings(made)["mqtt_maximum_qos"] == 1
    assert "home/#" in made.files["permissions.toml"].text
    assert made.left_out == [
        "mosquitto.conf, line 2: password_file /etc/passwd: /etc/passwd: is not among the files that were sent; "
        "`fanlightd user import users.toml /etc/passwd` takes it over later"
    ]
    with pytest.raises(ConfError, match=r"line 1: include_dir /etc/mosquitto/conf\.d: none of its files"):
        convert(FilesSent({"mosquitto.conf": text}, "mosquitto.conf"), "mosquitto.conf")


def test_the_command_prints_or_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "connection a\naddress h\nremote_username u\nremote_password geheim\ntopic x\nwhat\n"
    converted(tmp_path, text)
    conf, folder = str(tmp_path / "mosquitto.conf"), tmp_path / "to"
    assert main(["import", conf]) == 1
    printed = capsys.readouterr()
    assert "# ---- bridges.toml ----" in printed.out
    assert "geheim" not in printed.out + printed.err
    assert printed.err == (
        "fanlightd: not converted: mosquitto.conf, line 6: what: no such option is known of a bridge\n"
    )
    assert main(["import", conf, "--to", str(folder)]) == 1
    assert (folder / "a.password").stat().st_mode & 0o777 == 0o600
    assert load(Sources(config=folder / "fanlight.toml")).settings.bridges == folder / "bridges.toml"
    assert main(["import", conf, "--to", str(folder)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["import", str(tmp_path / "none")]) == 2
