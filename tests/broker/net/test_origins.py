"""Which Origin a WebSocket may come with (RFC 6455, 10.2)."""

import pytest

from fanlight_broker.net.origins import may_connect

PAGE = "https://dashboard.example.com"


@pytest.mark.parametrize("secure", [False, True])
def test_a_listed_page_may_connect_and_no_other(secure: bool) -> None:
    assert may_connect(PAGE, [PAGE], "127.0.0.1:8083", secure=secure)
    assert may_connect(PAGE, ["*"], "127.0.0.1:8083", secure=secure)
    assert not may_connect("null", [PAGE], "127.0.0.1:8083", secure=secure)
    assert not may_connect("https://evil.example.com", [PAGE], "127.0.0.1:8083", secure=secure)


@pytest.mark.parametrize("host", ["127.0.0.1:8083", "[::1]:8083", "192.0.2.1", "localhost:8083", "LOCALHOST"])
def test_an_origin_that_is_where_it_goes_is_no_foreign_page_if_that_is_no_name(host: str) -> None:
    assert may_connect(f"http://{host}", [], host, secure=False)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1:8083"),  # another server of this machine
        ("http://127.0.0.1", "127.0.0.1:8083"),
        ("https://127.0.0.1:8083", "127.0.0.1:8083"),
        ("http://localhost:8083", "127.0.0.1:8083"),
        ("127.0.0.1:8083", "127.0.0.1:8083"),
        ("null", "null"),
        ("http://", ""),
    ],
)  # fmt: skip
def test_an_origin_that_is_elsewhere_is_foreign(origin: str, host: str) -> None:
    assert not may_connect(origin, [], host, secure=False)


@pytest.mark.parametrize(
    "host", ["evil.example.com:8083", "localhost.example.com", "127.0.0.1.example.com", "2130706433", "[", "[::1", ""]
)
def test_a_page_that_has_led_its_name_here_is_foreign(host: str) -> None:
    assert not may_connect(f"http://{host}", [], host, secure=False)


def test_by_tls_the_certificate_tells_that_the_name_is_ours() -> None:
    assert may_connect("https://broker.example.com:8084", [], "broker.example.com:8084", secure=True)
    assert not may_connect("http://broker.example.com:8084", [], "broker.example.com:8084", secure=True)
    assert not may_connect("https://evil.example.com", [], "broker.example.com:8084", secure=True)


OURS = {"http": 7421, "https": 7424}


@pytest.mark.parametrize(
    ("origin", "host", "secure"),
    [
        ("http://127.0.0.1:7421", "127.0.0.1:7425", False), ("http://localhost:7421", "localhost:7425", False),
        ("http://[::1]:7421", "[::1]:7425", False),
        ("https://broker.example.com:7424", "broker.example.com:7426", True),
    ],
)  # fmt: skip
def test_a_page_that_the_broker_serves_may_connect(origin: str, host: str, secure: bool) -> None:
    assert may_connect(origin, [], host, secure=secure, pages=OURS)
    assert not may_connect(origin, [], host, secure=secure)
    assert not may_connect(origin, [], host, secure=secure, pages={"http": 8000, "https": 8000})


@pytest.mark.parametrize(
    ("origin", "host", "secure"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1:7425", False),  # another server of this machine
        ("http://127.0.0.1", "127.0.0.1:7425", False),
        ("https://127.0.0.1:7421", "127.0.0.1:7425", False),
        ("http://localhost:7421", "127.0.0.1:7425", False),
        ("http://evil.example.com:7421", "evil.example.com:7425", False),  # a name that was led here
        ("http://127.0.0.1:7421/x", "127.0.0.1:7425", False),
        ("http://127.0.0.1:99999", "127.0.0.1:7425", False),
        ("http://broker.example.com:7421", "broker.example.com:7426", True),
        ("https://evil.example.com:7424", "broker.example.com:7426", True),
        ("null", "127.0.0.1:7425", False),
        ("http://:7421", ":7425", False),
    ],
)  # fmt: skip
def test_a_page_that_is_not_the_brokers_is_foreign(origin: str, host: str, secure: bool) -> None:
    assert not may_connect(origin, [], host, secure=secure, pages=OURS)


def test_a_browser_leaves_the_usual_port_out() -> None:
    assert may_connect("https://broker.example.com", [], "broker.example.com:7426", secure=True, pages={"https": 443})
