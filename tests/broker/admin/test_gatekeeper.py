"""Who may see which path: probes, /metrics with its token, and what a stranger learns."""

import logging

import pytest

from fanlight_broker.admin.gatekeeper import MetricsAccess
from fanlight_broker.auth import Credentials
from tests.captured_logs import capture_logs

from .conftest import Serve
from .test_http import basic
from .test_listener import dial, to_end

TOKEN = {"Authorization": "Bearer scrape-me"}
CLOSED = Credentials(password="sesame")


async def test_readyz_is_open_without_details_and_tells_more_to_who_may_see_the_rest(serve: Serve) -> None:
    served = await serve(CLOSED)
    assert await served.get("/readyz") == (200, {"status": "ready"})
    assert await served.get("/readyz", headers=basic("x", "wrong")) == (200, {"status": "ready"})
    details = {"version": "1.2.3", "unwell": ["archive"], "durability": "in memory only"}
    served.inspected.unwell_parts = ["archive"]
    assert await served.get("/readyz", headers=basic("x", "sesame")) == (200, {"status": "ready", **details})
    served.inspected.ready = False
    status, answer = await served.get("/readyz")
    assert (status, list(answer)) == (503, ["error"])
    status, answer = await served.get("/readyz", headers=basic("x", "sesame"))
    assert (status, answer["unwell"]) == (503, ["archive"])


async def test_a_probe_by_any_host_name_is_answered_and_learns_nothing(serve: Serve) -> None:
    served = await serve()
    assert await served.get("/readyz", headers={"Host": "evil.example"}) == (200, {"status": "ready"})


async def test_the_token_opens_metrics_and_nothing_else(serve: Serve) -> None:
    served = await serve(CLOSED, metrics=MetricsAccess(token="scrape-me"))
    async with served.session.get(f"{served.url}/metrics", headers=TOKEN) as response:
        assert response.status == 200
    async with served.session.get(f"{served.url}/metrics", headers=basic("x", "sesame")) as response:
        assert response.status == 200
    for header in ("Bearer wrong", "Bearer", "Bearer scrape-me-not", "bearer \u00e9"):
        async with served.session.get(f"{served.url}/metrics", headers={"Authorization": header}) as response:
            assert response.status == 401
    async with served.session.get(f"{served.url}/metrics") as response:
        assert response.status == 401
    assert (await served.get("/stats", headers=TOKEN))[0] == 401
    _, stats = await served.get("/stats", headers=basic("x", "sesame"))
    assert stats["http_tokens_refused"] == 4


async def test_a_token_is_refused_where_none_is_set(serve: Serve) -> None:
    served = await serve(CLOSED)
    async with served.session.get(f"{served.url}/metrics", headers=TOKEN) as response:
        assert response.status == 401


async def test_metrics_that_are_open_need_nothing_and_open_nothing_else(serve: Serve) -> None:
    served = await serve(CLOSED, metrics=MetricsAccess(open=True))
    for headers in ({}, TOKEN, {"Host": "prometheus.internal"}):
        async with served.session.get(f"{served.url}/metrics", headers=headers) as response:
            assert response.status == 200
    assert (await served.get("/stats"))[0] == 401


async def test_a_label_is_no_credential_against_a_page_of_the_web(serve: Serve) -> None:
    served = await serve()  # with nothing to check against: any credentials pass, and prove nothing
    headers = {"Host": "evil.example", **basic("x", "y")}
    assert (await served.get("/stats", headers=headers))[0] == 403
    assert (await served.get("/stats", headers=basic("x", "y")))[0] == 200


MALFORMED = {
    "native": b"\x00\x00\x00\x0b\x93\x01\x01\x81", "version": b"GET / HTTP/9.9\r\n\r\n", "words": b"hello\r\n\r\n",
    "length": b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    "header": b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 20_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("sent", MALFORMED.values(), ids=MALFORMED)
async def test_what_is_not_http_is_one_debug_line_and_no_traceback(
    serve: Serve, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    served = await serve()
    with capture_logs() as lines:
        reader, writer = await dial(served)
        writer.write(sent)
        answer = await to_end(reader)
        writer.close()
    assert b" 400 " in answer
    assert b"Server: fanlight\r\n" in answer
    assert (await served.get("/stats"))[1]["http_requests_malformed"] == 1
    assert [(line["event"], line["log_level"]) for line in lines] == [("http_request_malformed", "debug")]
    assert not [record for record in caplog.records if record.name.startswith("aiohttp")]  # its own words


async def test_no_answer_tells_versions_in_its_server_header(serve: Serve) -> None:
    served = await serve(CLOSED)
    for path in ("/healthz", "/readyz", "/metrics", "/stats", "/nope"):
        async with served.session.get(served.url + path) as response:
            assert response.headers["Server"] == "fanlight"


async def test_http_requests_are_not_counted_as_logins_and_refused_ones_are(serve: Serve) -> None:
    served = await serve(CLOSED)
    for _ in range(3):
        await served.get("/stats", headers=basic("x", "sesame"))
    await served.get("/stats", headers=basic("x", "wrong"))
    counted = served.server.gatekeeper._authenticator.counters()  # type: ignore[attr-defined]
    assert (counted["logins"], counted["logins_anonymous"], counted["logins_failed"]) == (0, 0, 1)
