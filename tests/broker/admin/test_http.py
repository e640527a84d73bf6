"""The HTTP listener, asked by a real client: views, paging, access and errors."""

import base64
import json

import aiohttp
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from fanlight_broker.admin.gatekeeper import _is_local_name
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.admin.metrics import Exposition
from fanlight_broker.admin.view import Answer, Query
from fanlight_broker.auth import Credentials
from fanlight_broker.core.metrics import MetricFamily

from .conftest import Serve, Served


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


# Views.


async def test_healthz_is_200_as_long_as_the_process_answers(served: Served) -> None:
    served.inspected.ready = False
    assert await served.get("/healthz") == (200, {"status": "ok"})


async def test_healthz_names_what_is_unwell_and_stays_200(served: Served) -> None:
    served.inspected.unwell_parts = ["archive"]
    assert await served.get("/healthz") == (200, {"status": "degraded", "unwell": ["archive"]})


async def test_the_archive_is_shown_if_there_is_one(served: Served) -> None:
    status, answer = await served.get("/archive")
    assert status == 404
    assert "--archive" in answer["error"]
    served.inspected.archived = {"archive_end": 7}
    assert await served.get("/archive") == (200, {"archive_end": 7})


async def test_readyz_is_503_while_the_broker_drains(served: Served) -> None:
    assert await served.get("/readyz") == (
        200, {"status": "ready", "version": "1.2.3", "unwell": [], "durability": "in memory only"}
    )
    served.inspected.ready = False
    status, answer = await served.get("/readyz")
    assert status == 503
    assert "draining" in answer["error"]


async def test_stats_are_all_figures_in_one_object(served: Served) -> None:
    status, stats = await served.get("/stats")
    assert status == 200
    assert stats["version"] == "1.2.3"
    assert stats["uptime_seconds"] == 1.5
    assert (stats["messages_in"], stats["messages_out"], stats["connections"]) == (41, 42, 3)
    assert stats["http_requests"] == 1
    assert stats["refusals"] == {"banned": 2, "server_busy": 1}


async def test_connections_and_subscriptions_come_in_pages(served: Served) -> None:
    status, page = await served.get("/connections?limit=2&offset=1")
    assert status == 200
    assert [row["connection"] for row in page.pop("connections")] == [1, 2]
    assert page == {"offset": 1, "limit": 2, "total": 3}
    _, page = await served.get("/subscriptions")
    assert len(page["subscriptions"]) == 5
    assert (page["offset"], page["limit"], page["total"]) == (0, 100, 5)
    _, page = await served.get("/sessions?limit=1")
    assert (page["sessions"], page["total"]) == ([{"client": "away", "queued": 3}], 2)
    _, page = await served.get("/delayed")
    assert (page["delayed"], page["total"]) == ([{"topic": "later", "due_seconds": 60.0}], 1)
    _, page = await served.get("/marks?offset=1")
    mark = {"user": "anna", "producer": "q.1", "batch": 1, "sequence": 2**64 - 1}
    assert (page["marks"], page["total"]) == ([mark], 2)
    _, page = await served.get("/subscriptions?offset=9007199254740992")
    assert page["subscriptions"] == []


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=-1",
        "limit=x",
        "limit=",
        "limit=%D9%A1",
        "offset=-1",
        "limit=" + "9" * 50,
    ],
)
async def test_a_page_out_of_bounds_is_told_its_bounds(served: Served, query: str) -> None:
    status, answer = await served.get(f"/connections?{query}")
    assert status == 400
    assert "must be a whole number from" in answer["error"]


async def test_shares_are_shown_with_those_who_hold_most_first(served: Served) -> None:
    status, shares = await served.get("/shares?limit=1")
    assert (status, shares) == (200, {"principals": [{"principal": "user anna"}], "total": 2})


async def test_quotas_are_asked_for_by_order_page_and_name(served: Served) -> None:
    status, quotas = await served.get("/quotas?by=held&limit=3&offset=2&principal=user%20anna&quota=devices&per=group")
    assert (status, quotas) == (200, {"quotas": [{"principal": "user anna"}], "by": "held", "total": 1})
    assert served.inspected.asked == (2, 3, "held", "user anna", "devices", "group")
    await served.get("/quotas")
    assert served.inspected.asked == (0, 100, "part", None, None, "user")
    status, answer = await served.get("/quotas?by=size")
    assert (status, answer["error"][:39]) == (400, "by=size must be one of part, messages_i")
    assert (await served.get("/quotas?offset=4900"))[0] == 200
    assert (await served.get("/quotas?offset=4901"))[0] == 400


def test_a_name_that_no_utf_8_can_say_does_not_take_the_metrics_away() -> None:
    family = MetricFamily("named", "By name", "gauge", [({"user": "a\ud800"}, 1.0), ({"user": "\u00e9"}, 2.0)])
    text, _ = Exposition([MetricSource({}, families=lambda: [family])], "1").render("")
    assert b'fanlight_named{user="a\\\\ud800"} 1.0' in text
    assert 'fanlight_named{user="\u00e9"} 2.0'.encode() in text


async def test_a_view_of_a_part_may_take_its_time_or_not_be_there(serve: Serve) -> None:
    assert (await (await serve()).get("/permissions"))[0] == 404
    asked = []

    async def later(query: Query) -> Answer:
        asked.append(dict(query))
        return 200, {"rules": []}

    served = await serve(views={"/permissions": later})
    assert await served.get("/permissions?limit=7&used=false") == (200, {"rules": []})
    assert asked == [{"limit": "7", "used": "false"}]


async def test_hot_topics_and_slow_consumers_are_lists_under_their_name(served: Served) -> None:
    status, topics = await served.get("/topics?limit=1")
    assert (status, topics["topics"]) == (200, served.inspected.hot)  # a lone surrogate and all
    assert (await served.get("/topics?by=rate"))[0] == 200
    assert (await served.get("/topics?by=size"))[0] == 400
    status, slow = await served.get("/slow-consumers")
    assert (status, slow["slow_consumers"]) == (200, served.inspected.slow)


async def test_explain_hands_over_topic_syntax_and_client(served: Served) -> None:
    status, explained = await served.get("/explain?topic=a%2Fb%23&syntax=mqtt&client=feed&limit=7")
    assert (status, explained) == (200, {"topic": "a/b#", "matches": []})
    assert served.inspected.asked == ("a/b#", "mqtt", "feed", 7, None)
    await served.get("/explain?topic=a&fields=%7B%22price%22%3A%2080%7D")
    assert served.inspected.asked == ("a", "amqp", None, 100, {"price": 80})


async def test_explain_takes_the_empty_topic_and_amqp_as_the_default(served: Served) -> None:
    await served.get("/explain?topic=")
    assert served.inspected.asked == ("", "amqp", None, 100, None)


async def test_explain_tells_what_it_wants(served: Served) -> None:
    status, answer = await served.get("/explain")
    assert (status, answer["error"][:15]) == (400, "say which topic")
    status, answer = await served.get("/explain?topic=a&syntax=stomp")
    assert (status, answer) == (400, {"error": "syntax 'stomp' is neither amqp nor mqtt"})
    refused = {"%7B": "fields is no JSON", "%5B1%5D": "fields must be a JSON object", "%5B" * 500: "no JSON"}
    for wrong, said in refused.items():
        status, answer = await served.get(f"/explain?topic=a&fields={wrong}")
        assert status == 400
        assert said in answer["error"]
    status, answer = await served.get("/explain?topc=a")
    assert status == 400
    assert "unknown parameter 'topc'; /explain takes: topic, syntax, fields, client, limit" in answer["error"]


async def test_the_root_and_an_unknown_path_list_the_paths(served: Served) -> None:
    status, index = await served.get("/")
    assert (status, "/slow-consumers" in index["paths"]) == (200, True)
    for path in ("/nope", "/stats/", "/stats/x", "/%00"):
        status, answer = await served.get(path)
        assert (status, "/explain" in answer["error"]) == (404, True)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
async def test_nothing_can_be_written(served: Served, method: str) -> None:
    async with served.session.request(method, f"{served.url}/stats", data=b"x" * 1000) as response:
        assert response.status == 405
        assert response.headers["Allow"] == "GET, HEAD"
        assert "GET" in (await response.json())["error"]


async def test_head_is_get_without_the_body(served: Served) -> None:
    async with served.session.head(f"{served.url}/stats") as response:
        assert response.status == 200
        assert int(response.headers["Content-Length"]) > 0
        assert await response.read() == b""


async def test_an_error_in_the_broker_is_500_and_the_listener_goes_on(served: Served) -> None:
    served.inspected.hot_topics = None  # type: ignore[assignment, method-assign]
    assert await served.get("/topics") == (
        500,
        {"error": "an error in the broker; its log has the traceback"},
    )
    assert (await served.get("/stats"))[0] == 200


# Metrics.


async def test_metrics_are_what_prometheus_reads(served: Served) -> None:
    async with served.session.get(f"{served.url}/metrics") as response:
        assert response.content_type == "text/plain"
        families = {family.name: family for family in parse_text(await response.text())}
    counter = families["fanlight_messages_in"]
    assert counter.type == "counter"
    assert counter.documentation == "Messages accepted from publishers"
    assert [(sample.name, sample.value) for sample in counter.samples] == [("fanlight_messages_in_total", 41.0)]
    assert families["fanlight_clients"].type == "gauge"
    assert families["fanlight_build_info"].samples[0].labels == {"version": "1.2.3"}
    assert families["fanlight_http_requests"].samples[0].value == 1


async def test_a_counter_by_reason_is_one_family_with_a_label(served: Served) -> None:
    async with served.session.get(f"{served.url}/metrics") as response:
        families = {family.name: family for family in parse_text(await response.text())}
    family = families["fanlight_refusals"]
    assert (family.type, family.documentation) == ("counter", "Clients refused")
    assert [(sample.name, sample.labels, sample.value) for sample in family.samples] == [
        ("fanlight_refusals_total", {"reason": "banned"}, 2.0),
        ("fanlight_refusals_total", {"reason": "server_busy"}, 1.0),
    ]


async def test_metrics_are_open_metrics_for_who_asks(served: Served) -> None:
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    async with served.session.get(f"{served.url}/metrics", headers=accept) as response:
        assert response.content_type == "application/openmetrics-text"
        names = [family.name for family in parse_openmetrics(await response.text())]  # type: ignore[no-untyped-call]
    assert "fanlight_messages_in" in names


@pytest.mark.parametrize("accept", ["", ";", "application/openmetrics-text; version=x", "*/*;q=a,,;=", "é"])
async def test_metrics_answer_any_accept_header(served: Served, accept: str) -> None:
    async with served.session.get(f"{served.url}/metrics", headers={"Accept": accept}) as response:
        assert response.status == 200


# Access.


async def test_with_a_password_everything_but_the_probes_wants_it(serve: Serve) -> None:
    served = await serve(Credentials(password="sesame"))
    assert (await served.get("/healthz"))[0] == 200
    for path in ("/", "/stats", "/nope", "/explain?topic=a"):
        async with served.session.get(served.url + path) as response:
            assert response.status == 401
            assert response.headers["WWW-Authenticate"].startswith("Basic ")
            assert await response.json() == {"error": "this broker requires a user name and a password"}
    async with served.session.get(f"{served.url}/metrics") as response:
        assert response.status == 401


async def test_the_right_password_opens_and_a_wrong_one_does_not(serve: Serve) -> None:
    served = await serve(Credentials(password="sésame"))
    assert (await served.get("/stats", headers=basic("ali", "sésame")))[0] == 200
    status, answer = await served.get("/stats", headers=basic("ali", "sesame"))
    assert (status, answer) == (401, {"error": "wrong user name or password"})


@pytest.mark.parametrize(
    "header", ["", "Basic", "Basic !", "Basic /////w==", "Bearer abc", "Basic YWxp", "Basic " + "A" * 5000]
)
async def test_a_header_that_is_no_basic_authentication_is_401(serve: Serve, header: str) -> None:
    served = await serve(Credentials(password="sesame"))
    status, _ = await served.get("/stats", headers={"Authorization": header})
    assert status == 401


async def test_without_credentials_a_page_of_the_web_cannot_ask_by_its_own_name(serve: Serve) -> None:
    served = await serve()
    status, answer = await served.get("/stats", headers={"Host": "evil.example:7421"})
    assert status == 403
    assert "http://localhost" in answer["error"]
    assert (await served.get("/stats", headers={"Host": "localhost:1"}))[0] == 200
    assert (await served.get("/healthz", headers={"Host": "evil.example"}))[0] == 200
    served = await serve(Credentials(password="sesame"))
    headers = {"Host": "broker.internal", **basic("a", "sesame")}
    assert (await served.get("/stats", headers=headers))[0] == 200


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1:7421", True),
        ("[::1]:7421", True),
        ("LocalHost:1", True),
        ("192.0.2.1", True),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
        ("[", False),
        ("::1", False),
    ],
)
def test_only_addresses_and_localhost_cannot_be_led_elsewhere(host: str, local: bool) -> None:
    assert _is_local_name(host) is local


# Lifecycle.


async def test_stopping_ends_an_open_connection_and_frees_the_port(serve: Serve) -> None:
    served = await serve()
    port = served.server.port
    await served.get("/stats")  # leaves a connection open
    await served.server.stop()
    with pytest.raises(aiohttp.ClientConnectionError):
        await served.get("/stats")
    again = await serve(port=port)
    assert again.server.port == port


async def test_a_port_in_use_is_an_os_error(serve: Serve) -> None:
    served = await serve()
    with pytest.raises(OSError, match="in use"):
        await serve(port=served.server.port)


async def test_answers_are_not_cached(served: Served) -> None:
    async with served.session.get(f"{served.url}/stats") as response:
        assert response.headers["Cache-Control"] == "no-store"
        assert json.loads(await response.read())
