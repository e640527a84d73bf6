"""The settings of TLS: which go together, and what a port with TLS exposes."""

from pathlib import Path
from typing import Any

import pytest

from fanlight_broker.config import SettingsError, Sources, apply_reload, load

CERTIFICATE = {"tls_certificate": "broker.pem"}
REQUIRED = {**CERTIFICATE, "tls_client_ca": "ca.pem", "tls_client_certificates": "required"}


def problems(**flags: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        load(Sources(flags=flags))
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [("tls_key", "k"), ("tls_key_password_file", "p"), ("tls_client_ca", "c"), ("tls_client_certificates", "optional")],
)
def test_what_belongs_to_a_certificate_is_refused_without_one(key: str, value: str) -> None:
    assert f"{key} = {value} (flag --{key.replace('_', '-')}): is of no use without tls_certificate" in problems(
        **{key: value}
    )


def test_client_certificates_and_their_ca_want_each_other() -> None:
    assert "requires tls_client_ca" in problems(**CERTIFICATE, tls_client_certificates="required")
    assert "while tls_client_certificates is none" in problems(**CERTIFICATE, tls_client_ca="ca.pem")
    load(Sources(flags=REQUIRED))


def test_ports_with_tls_are_not_those_without() -> None:
    assert "native_tls_port = 7420" in problems(**CERTIFICATE, native_tls_port="7420")
    assert "http_tls_port = 7421" in problems(**CERTIFICATE, http_tls_port="7421")
    load(Sources(flags={"native_tls_port": "7420"}))  # not open without a certificate
    load(Sources(flags={**CERTIFICATE, "native_tls_port": "0", "native_port": "0", "http_tls_port": "0"}))


@pytest.mark.parametrize("key", ["native_tls_host", "http_tls_host"])
def test_a_port_with_tls_wants_a_password_for_other_machines_unless_it_requires_certificates(key: str) -> None:
    host = {key: "0.0.0.0"}
    assert f"{key} = 0.0.0.0" in problems(**CERTIFICATE, **host)
    assert f"{key} = 0.0.0.0" in problems(**{**REQUIRED, **host, "tls_client_certificates": "optional"})
    load(Sources(flags={**REQUIRED, **host}))
    load(Sources(flags={**CERTIFICATE, **host}, environment={"FANLIGHT_PASSWORD": "x"}))
    load(Sources(flags=host))  # not open without a certificate


def test_required_certificates_say_nothing_about_the_plain_ports() -> None:
    assert "native_host = 0.0.0.0" in problems(**REQUIRED, native_host="0.0.0.0")


def test_a_reload_takes_no_password_away_from_a_broker_that_others_reach_until_its_restart(tmp_path: Path) -> None:
    config = tmp_path / "fanlight.toml"
    config.write_text('native_host = "0.0.0.0"\npassword_file = "users"\n')
    old = load(Sources(config=config)).settings
    config.write_text('native_host = "127.0.0.1"\n')
    new = load(Sources(config=config)).settings
    with pytest.raises(SettingsError, match=r"native_host = 0\.0\.0\.0 \(until the restart\)"):
        apply_reload(old, new)
