"""Reading certificates: what is wrong is said with the setting, the file and what to do."""

import ssl
from pathlib import Path

import pytest

from fanlight_broker.net.tls import Tls, TlsError, TlsFiles, name_of, read
from tests.certificates import Certificates


def test_a_certificate_with_its_key_in_one_file_is_enough(certificates: Certificates) -> None:
    context = read(TlsFiles(certificates.server))
    assert context.verify_mode is ssl.CERT_NONE
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_the_lowest_version_and_what_is_asked_of_clients_are_set(certificates: Certificates) -> None:
    files = TlsFiles(
        certificates.server, client_ca=certificates.ca, client_certificates="required", version_min="1.3"
    )
    context = read(files)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version is ssl.TLSVersion.TLSv1_3
    assert len(context.get_ca_certs()) == 1


def test_an_encrypted_key_takes_its_password_from_a_file(certificates: Certificates, tmp_path: Path) -> None:
    certificate, key = certificates.encrypted("secret", b"s3cret")
    password = tmp_path / "password"
    password.write_text("s3cret\nthe rest is not read\n")
    read(TlsFiles(certificate, key, password))


def refused(files: TlsFiles) -> str:
    with pytest.raises(TlsError) as caught:
        read(files)
    return str(caught.value)


def test_an_encrypted_key_without_a_password_is_refused_and_nobody_is_asked(certificates: Certificates) -> None:
    certificate, key = certificates.encrypted("secret", b"s3cret")
    text = refused(TlsFiles(certificate, key))
    assert text.startswith(f"tls_key {key}:")
    assert "tls_key_password_file" in text


def test_a_wrong_or_empty_password_file_is_named(certificates: Certificates, tmp_path: Path) -> None:
    certificate, key = certificates.encrypted("secret", b"s3cret")
    password = tmp_path / "password"
    password.write_text("wrong\n")
    assert f"tls_key_password_file {password}" in refused(TlsFiles(certificate, key, password))
    password.write_text("\n")
    assert refused(TlsFiles(certificate, key, password)).startswith(f"tls_key_password_file {password}: its first line")


def test_a_file_that_is_not_there_is_named(certificates: Certificates, tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    for files, setting in (
        (TlsFiles(missing), "tls_certificate"),
        (TlsFiles(certificates.server, missing), "tls_key"),
        (TlsFiles(certificates.server, None, missing), "tls_key_password_file"),
        (TlsFiles(certificates.server, client_ca=missing), "tls_client_ca"),
    ):
        assert refused(files).startswith(f"{setting} {missing}: No such file or directory;")


def test_a_file_that_is_no_pem_is_named(certificates: Certificates, tmp_path: Path) -> None:
    der = tmp_path / "certificate.der"
    der.write_bytes(bytes(range(256)))
    assert "no certificate in it, in PEM form" in refused(TlsFiles(der))
    assert "no private key in it, in PEM form" in refused(TlsFiles(certificates.server, der))
    assert "no certificate in it, in PEM form" in refused(TlsFiles(certificates.server, client_ca=der))


def test_broken_pem_is_refused(certificates: Certificates, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    assert f"tls_certificate {broken}" in refused(TlsFiles(broken, certificates.server))
    assert f"tls_client_ca {broken}" in refused(TlsFiles(certificates.server, client_ca=broken))


def test_the_key_of_another_certificate_is_refused(certificates: Certificates) -> None:
    other = certificates.sign("other", "localhost")
    assert "is not the key of the first certificate" in refused(TlsFiles(certificates.server, other))


def test_a_file_that_is_far_too_large_is_not_read(tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(1 << 30)
    assert "is it the right file?" in refused(TlsFiles(large))


def test_connections_that_begin_later_use_the_new_context(certificates: Certificates) -> None:
    tls = Tls(TlsFiles(certificates.server))
    before = tls.context
    tls.prepare(TlsFiles(certificates.sign("renewed", "localhost")))()
    assert tls.context is not before


def test_a_certificate_names_its_user() -> None:
    subject = ((("organizationName", "Acme"),), (("commonName", "outer"),), (("commonName", "alice"),))
    alternative = (("DNS", "device-7.example.com"), ("DNS", "other"))
    assert name_of({"subject": subject, "subjectAltName": alternative, "serialNumber": "0A"}) == "alice"
    without = {"subject": subject[:1], "subjectAltName": alternative, "serialNumber": "0A"}
    assert name_of(without) == "device-7.example.com"
    assert name_of({"subject": subject[:1], "serialNumber": "0A"}) == "certificate 0A"
    assert name_of({}) == name_of(None) == ""
