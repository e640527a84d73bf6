"""HTTP: views need admin:read, what changes something admin:write; probes and tokens need neither."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fanlight_broker.admin.gatekeeper import MetricsAccess
from fanlight_broker.admin.inspection import PATHS
from fanlight_broker.auth import Credentials
from fanlight_broker.core.enforcement import Enforcement
from fanlight_broker.core.errors import FanlightError
from tests.broker.core.parts import broker_with
from tests.broker.core.reference import Reference, allow, deny

from .conftest import Serve, Served
from .test_http import basic

RELOAD = "/permissions/reload"


def enforcement(*rules: Any) -> Enforcement:
    broker = broker_with()
    broker.use_permissions(Reference(*rules))
    return broker.enforcement


async def post(served: Served, path: str, **options: Any) -> tuple[int, Any]:
    async with served.session.post(served.url + path, **options) as response:
        return response.status, await response.json()


@pytest.mark.parametrize("path", sorted(set(PATHS) - {"/healthz", "/readyz"}))
@pytest.mark.parametrize("permitted", [True, False])
async def test_a_view_needs_admin_read(serve: Serve, path: str, permitted: bool) -> None:
    rules = enforcement(allow("admin:read") if permitted else deny("admin:read"), allow("admin:write subscribe"))
    served = await serve(enforcement=rules)
    query = "?topic=a" if path == "/explain" else ""
    async with served.session.get(served.url + path + query) as response:
        assert (response.status != 403) == permitted
    assert rules.counters()["admin_read_denied"] == (not permitted)


async def test_all_subscriptions_as_lines_need_admin_read(serve: Serve) -> None:
    served = await serve(enforcement=enforcement(allow("admin:write")))
    status, answer = await served.get("/subscriptions?format=jsonl")
    assert (status, answer["error"]) == (403, "no permission: admin:read")


async def test_probes_need_nothing_and_tell_less_to_who_may_not_see_the_rest(serve: Serve) -> None:
    rules = enforcement(deny("all"))
    served = await serve(enforcement=rules)
    assert await served.get("/healthz") == (200, {"status": "ok"})
    assert await served.get("/readyz") == (200, {"status": "ready"})
    assert rules.counters()["admin_read_denied"] == 0, "a probe is no attempt at anything"


async def test_the_token_of_metrics_is_a_permission_of_its_own(serve: Serve) -> None:
    served = await serve(enforcement=enforcement(deny("all")), metrics=MetricsAccess(token="scrape-me"))
    for headers, status in (({}, 403), ({"Authorization": "Bearer scrape-me"}, 200)):
        async with served.session.get(f"{served.url}/metrics", headers=headers) as response:
            assert response.status == status


async def test_a_rule_asks_for_the_user_where_it_is_verified_alone(serve: Serve, tmp_path: Path) -> None:
    """With one password for everybody a user name is no more than what a client says."""
    served = await serve(
        Credentials(password="sesame"), enforcement=enforcement(allow("admin:read", user="root"))
    )
    status, _ = await served.get("/stats", headers=basic("root", "sesame"))
    assert status == 403


@pytest.mark.parametrize("permitted", [True, False])
async def test_an_action_needs_admin_write(serve: Serve, permitted: bool) -> None:
    done = []

    async def reload() -> Mapping[str, Any]:
        done.append(1)
        return {"rules": 3}

    rules = enforcement(allow("admin:read"), allow("admin:write") if permitted else deny("admin:write"))
    served = await serve(enforcement=rules, actions={RELOAD: reload})
    status, answer = await post(served, RELOAD)
    assert (status, len(done)) == ((200, 1) if permitted else (403, 0))
    assert rules.counters()["admin_write_denied"] == (not permitted)
    if permitted:
        assert answer == {"rules": 3}


async def test_an_action_that_fails_says_why(serve: Serve) -> None:
    async def reload() -> Mapping[str, Any]:
        raise FanlightError("line 3: no such action", line=3)

    served = await serve(actions={RELOAD: reload})
    assert await post(served, RELOAD) == (409, {"error": "line 3: no such action", "line": 3})


async def test_an_action_is_posted_by_no_web_page_and_is_no_view(serve: Serve) -> None:
    async def reload() -> Mapping[str, Any]:
        return {}

    served = await serve(actions={RELOAD: reload})
    assert (await post(served, RELOAD, headers={"Origin": "https://evil.example"}))[0] == 403
    assert (await served.get(RELOAD))[0] == 405
    assert (await post(served, "/stats"))[0] == 405
    assert (await post(await serve(), RELOAD))[0] == 404
