"""The alerts and the board: checked by promtool, and asked of a Prometheus that scrapes a real broker."""

import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.make_board import board
from tests import require
from tests.conftest import StartBroker, TestBroker
from tests.distributions import ROOT

ALERTS = ROOT / "prometheus" / "alerts.yml"
BOARD = ROOT / "grafana" / "fanlight.json"
NAME = re.compile(r"\b(?:fanlight|process)_[a-z_]+")
# Of histograms, as PromQL has them; and what is there only with something that this broker has not.
PARTS = ("_bucket", "_sum", "_count")
ONLY_WITH = {
    "fanlight_certificate_expires_timestamp_seconds": "TLS",
    "fanlight_quota_used": "quotas", "fanlight_quota_limit": "quotas",
    "fanlight_archive_holds_overruled_total": "an archive",
    "fanlight_permission_group_denials_total": "permissions",
}  # fmt: skip
ATTEMPTS = 600


def expressions() -> dict[str, str]:
    """All of PromQL, by where it stands; with a value in place of Grafana's variables."""
    found = {}
    for panel in json.loads(BOARD.read_text(encoding="utf-8"))["panels"]:
        for target in panel.get("targets", ()):
            found[f"{panel['title']}: {target['legendFormat']}"] = target["expr"]
    rules = ALERTS.read_text(encoding="utf-8")
    found |= dict(re.findall(r"- alert: (\w+)\n        expr: (?:\|\n)?(.*?)\n        (?:for|labels)", rules, re.DOTALL))
    return {
        place: text.replace("$__rate_interval", "1m").replace("$instance", ".*") for place, text in found.items()
    }


@pytest.fixture(scope="module")
def broker(start_module_broker: StartBroker, tmp_path_factory: pytest.TempPathFactory) -> TestBroker:
    return start_module_broker(data=str(tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="module")
def prometheus(broker: TestBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Prometheus that has scraped the broker."""
    program = require.command("prometheus", package="prometheus")
    folder = tmp_path_factory.mktemp("prometheus")
    target = urllib.parse.urlsplit(broker.http_url).netloc
    (folder / "prometheus.yml").write_text(json.dumps({  # JSON is YAML
        "global": {"scrape_interval": "1s"}, "rule_files": [str(ALERTS)],
        "scrape_configs": [{"job_name": "fanlight", "static_configs": [{"targets": [target]}]}],
    }), encoding="utf-8")  # fmt: skip
    command = [
        program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
        "--web.listen-address=127.0.0.1:0", "--log.format=json",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield _url_of(process)
        finally:
            process.terminate()
            assert process.stderr is not None
            process.stderr.read()
            process.wait(60)


def _url_of(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    said, url = [], ""
    for line in process.stderr:
        said.append(line)
        event = json.loads(line)
        if event.get("msg") == "Listening on" and "address" in event:
            url = f"http://{event['address']}"
        if event.get("msg") == "Server is ready to receive web requests.":
            return url
    raise AssertionError("prometheus has ended:\n" + "".join(said))


def asked(url: str, query: str) -> list[Any]:
    """The answer to an instant query. Raises urllib.error.HTTPError where Prometheus cannot do it."""
    wanted = f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(wanted, timeout=60) as response:
        answer = json.load(response)
    assert answer["status"] == "success", answer
    return list(answer["data"]["result"])


def test_the_alerts_pass_promtool_and_their_own_tests() -> None:
    promtool = require.command("promtool", package="prometheus")
    for command in (("check", "rules", ALERTS), ("test", "rules", ALERTS.with_name("alerts.test.yml"))):
        done = subprocess.run([promtool, *command], capture_output=True, text=True, check=False, cwd=ALERTS.parent)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_board_is_what_its_script_prints() -> None:
    assert json.loads(BOARD.read_text(encoding="utf-8")) == board(), "run: make board"


def test_the_panels_of_the_board_lie_beside_each_other() -> None:
    taken = set()
    panels = board()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        columns, lines = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        cells = {(x, y) for x in columns for y in lines}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_every_metric_of_the_alerts_and_the_board_is_one_of_a_broker(broker: TestBroker) -> None:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{broker.http_url}/metrics") as response:
        text = response.read().decode()
    there = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    there |= {name + part for name in there for part in PARTS}
    wanted = {name for query in expressions().values() for name in NAME.findall(query)}
    assert len(wanted) > 40
    assert wanted - there <= set(ONLY_WITH)
    # Those are in the page of metrics, so that a name that was changed is found.
    page = Path(ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert not [name for name in ONLY_WITH if f"`{name.removeprefix('fanlight_')}`" not in page]


def test_a_prometheus_answers_every_query_and_reports_a_broker_that_was_just_started(prometheus: str) -> None:
    poll = 'count_over_time(up{job="fanlight"}[1m]) > 2 and up{job="fanlight"} == 1'
    for _ in range(ATTEMPTS):
        if asked(prometheus, poll):
            break
        time.sleep(0.05)
    else:
        raise AssertionError("prometheus has not scraped the broker")
    for place, query in expressions().items():
        try:
            asked(prometheus, query)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{place}: {query}: {error.read().decode()}") from error
    assert not asked(prometheus, 'up{job="fanlight"} == 0')
    assert asked(prometheus, expressions()["FanlightRestarted"])
    assert asked(prometheus, expressions()["Used of the limits: connections"])
    assert asked(prometheus, expressions()["Processor: {{instance}}"])
