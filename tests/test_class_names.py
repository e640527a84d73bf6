"""Inside one package every class has a name of its own, so that a name says which one is meant.

Nested and private classes count, too, and so do structs and enums of Cython.
"""

import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "matchcore": "matchcore/matchcore",
    "fanlight": "clients/python/src/fanlight",
    "fanlight_archive": "archive/fanlight_archive",
    "fanlight_broker": "broker/fanlight_broker",
    "fanlight_bench": "bench/fanlight_bench",
    "fanlight_content": "research/content/fanlight_content",
    "fanlight_matchers": "research/matchers/fanlight_matchers",
    "fanlight_permissions": "permissions/fanlight_permissions",
    "fanlight_spark": "pipeline/fanlight_spark",
}
# `fanlight.sync` is the public interface once more without `async`, under the same names.
MIRRORS = {"fanlight": {"sync", "sync_message", "sync_queues", "sync_subscription"}}
# C's own, declared where they are used.
EXTERNAL = {"timespec"}
DEFINITION = re.compile(r"^[ \t]*(?:c?p?def +)?(?:packed +)?(?:class|struct|union|enum) +(\w+)", re.MULTILINE)


def definitions(package: str) -> dict[str, set[str]]:
    """The modules that define each name; a .pxd and its .pyx are one module."""
    found: dict[str, set[str]] = defaultdict(set)
    folder = ROOT / PACKAGES[package]
    for path in folder.rglob("*"):
        if path.suffix in (".py", ".pyx", ".pxd", ".pxi") and path.stem not in MIRRORS.get(package, ()):
            module = str(path.relative_to(folder).with_suffix(""))
            for name in set(DEFINITION.findall(path.read_text(encoding="utf-8"))) - EXTERNAL:
                found[name].add(module)
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_no_two_classes_of_a_package_share_a_name(package: str) -> None:
    found = definitions(package)
    assert len(found) > 5
    assert {name: sorted(modules) for name, modules in found.items() if len(modules) > 1} == {}
