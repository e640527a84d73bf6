"""The chart: linted and rendered by Helm, checked by the schemas of Kubernetes, and read by the broker."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import require
from tests.distributions import ROOT, run

CHART = ROOT / "deploy" / "helm" / "fanlight"
MANIFEST = ROOT / "deploy" / "kubernetes" / "fanlight.yaml"
KUBERNETES = ("1.30", "1.35")  # the oldest and the newest that are tried
LEAST = ("--set", "auth.usersSecret=fanlight-users")
ALL = (
    *LEAST, "--set", "auth.tokenKeysSecret=keys,tlsSecret=tls,serviceMonitor.enabled=true,metrics.tokenSecret=scrape",
    "--set", "networkPolicy.enabled=true,service.type=LoadBalancer,persistence.storageClass=fast,ports.amqp=null",
    "--set", "settings.connections_max=100000,settings.slow_policy=drop_oldest,settings.amqp=false",
    "--set-file", f"files.permissions\\.toml={ROOT / 'examples' / 'permissions.toml'}",
)  # fmt: skip


@pytest.fixture(scope="module")
def helm() -> Path:
    return require.helm()


def rendered(helm: Path, *values: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(run(helm, "template", "fanlight", CHART, *values)))


def of_kind(kind: str, documents: list[dict[str, Any]]) -> dict[str, Any]:
    return next(each for each in documents if each["kind"] == kind)


@pytest.mark.parametrize("values", [LEAST, ALL])
def test_helm_finds_nothing_wrong_with_the_chart(helm: Path, values: tuple[str, ...]) -> None:
    assert "0 chart(s) failed" in run(helm, "lint", "--strict", CHART, *values)


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("values", [LEAST, ALL])
def test_what_it_renders_is_valid(helm: Path, values: tuple[str, ...], version: str, tmp_path: Path) -> None:
    documents = rendered(helm, *values)
    # The ServiceMonitor is of the Prometheus operator, which Kubernetes' own schemas do not have.
    ours = [each for each in documents if each["kind"] != "ServiceMonitor"]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(ours), encoding="utf-8")
    validate = Path(sys.executable).with_name("kubernetes-validate")
    said = run(validate, "--strict", "-k", version, tmp_path / "all.yaml")
    assert said.count("passed for resource") == len(ours) >= 5


def test_the_plain_manifests_are_the_chart_with_the_least_that_it_needs(helm: Path) -> None:
    made = run("sh", ROOT / "scripts" / "make_manifest.sh", helm)
    assert made == MANIFEST.read_text(encoding="utf-8"), "run: make manifest"


def test_without_a_word_on_who_may_connect_it_says_what_to_do(helm: Path) -> None:
    done = subprocess.run([helm, "template", CHART], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "auth.usersSecret" in done.stderr


def test_a_value_that_is_not_known_is_refused(helm: Path) -> None:
    command = [helm, "template", CHART, *LEAST, "--set", "replicas=3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "replicas" in done.stderr


@pytest.mark.parametrize("values", [LEAST, ALL])
def test_the_broker_accepts_the_settings_and_files_that_it_renders(
    helm: Path, values: tuple[str, ...], tmp_path: Path
) -> None:
    files = of_kind("ConfigMap", rendered(helm, *values))["data"]
    # What a Secret would have: no part of the chart, so the settings that name it are left out.
    settings = re.sub(r'(?m)^\w+ = "/etc/fanlight-\w+/.*\n', "", files["fanlight.toml"] + "\n")
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "fanlight.toml").write_text(settings.replace("/etc/fanlight/", f"{tmp_path}/"), encoding="utf-8")
    said = run(Path(sys.executable).with_name("fanlightd"), "check-config", "--config", tmp_path / "fanlight.toml")
    assert re.search(r"grace_seconds\s.*20", said)
    if "permissions.toml" in files:
        assert re.search(r"connections_max\s.*100_?000", said)
        run(Path(sys.executable).with_name("fanlightd"), "permissions", "check", tmp_path / "permissions.toml")


def test_the_pod_has_no_rights_and_waits_for_the_store_before_it_is_killed(helm: Path) -> None:
    pod = of_kind("StatefulSet", rendered(helm, *LEAST))["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["enableServiceLinks"] is False
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert f"USER {pod['securityContext']['runAsUser']}:" in dockerfile
    exposed = set(map(int, re.findall(r"\d+", " ".join(re.findall(r"^EXPOSE (.*)$", dockerfile, re.MULTILINE)))))
    assert {port["containerPort"] for port in container["ports"]} <= exposed
    assert pod["terminationGracePeriodSeconds"] > 20  # grace_seconds of the values
