"""Make one site, with search, of the project's pages: `make site` writes it into build/site.

Zensical does the work: it is the successor of Material for MkDocs by the same people, which reaches its end in 2027,
and reads the same settings. Pages lie in several folders and link to each other and to files of the checkout, so they
are copied with what they link to, in the same layout, and links stay as they are. A link that leads nowhere fails the
build. Nothing of the site comes from the network: no fonts, no scripts of others.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

ROOT: Final = Path(__file__).resolve().parent.parent
BUILD: Final = ROOT / "build" / "site-source" / "pages"
SITE: Final = ROOT / "build" / "site"
SKIPPED: Final = {"build", "dist", "node_modules"}
LINK: Final = re.compile(r"\]\((?!\w+:|#)([^)\s#]+)")
# Title of a part -> its pages. What is not named is found by search and links, and listed under "More".
PARTS: Final[dict[str, tuple[str, ...]]] = {
    "Start": ("README.md", "docs/tutorial.md", "docs/compare.md", "docs/faq.md", "docs/topics.md", "docs/glossary.md"),
    "Install": ("docs/install.md", "docs/docker.md", "docs/kubernetes.md", "docs/configuration.md"),
    "Clients": (
        "docs/mqtt.md", "docs/amqp.md", "docs/amqp-definitions.md", "clients/python/README.md", "clients/js/README.md",
        "docs/native-protocol.md",
    ),
    "Messages": (
        "docs/selectors.md", "docs/rules.md", "docs/queues.md", "docs/delayed.md", "docs/archive.md",
        "docs/durability.md", "docs/bridge.md",
    ),
    "Security": (
        "docs/security.md", "docs/access.md", "docs/authentication.md", "docs/permissions.md", "docs/quotas.md",
        "docs/namespaces.md", "docs/tls.md",
    ),
    "Operate": (
        "docs/operations.md", "docs/dashboard.md", "docs/admin-command.md", "docs/http-api.md", "docs/metrics.md",
        "docs/tracing.md", "docs/load-testing.md", "docs/state.md",
    ),
    "Move": ("docs/migrate-mosquitto.md", "docs/migrate-nats.md", "docs/migrate-rabbitmq.md"),
    "Analyse": ("docs/pipeline.md", "docs/pipeline-jobs.md", "docs/pipeline-lakehouse.md",
                "docs/pipeline-broker.md", "docs/snapshots.md"),
    "Inside": ("ARCHITECTURE.md", "docs/matchcore.md", "docs/decisions/README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
}


def pages() -> list[Path]:
    """All pages, relative to the root."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("*/*/README.md")]
    places = {page.relative_to(ROOT) for page in found}
    return sorted(place for place in places if not any(part[0] == "." or part in SKIPPED for part in place.parts))


def linked(page: Path) -> Iterator[Path]:
    """The files that a page links to, relative to the root."""
    for target in LINK.findall((ROOT / page).read_text(encoding="utf-8")):
        path = (ROOT / page.parent / unquote(target)).resolve()
        if path.is_relative_to(ROOT) and path.exists():
            yield path.relative_to(ROOT)


def copy(all_pages: list[Path]) -> None:
    """The pages and what they link to, in the layout of the checkout. A folder becomes a page that lists it."""
    shutil.rmtree(BUILD, ignore_errors=True)
    for path in {*all_pages, *(target for page in all_pages for target in linked(page))}:
        target = BUILD / path
        if (ROOT / path).is_dir():
            if not (ROOT / path / "README.md").exists():
                target.mkdir(parents=True, exist_ok=True)
                names = sorted(each.name for each in (ROOT / path).iterdir() if not each.name.startswith((".", "_")))
                lines = [f"# {path}", "", "A folder of the checkout:", "", *(f"* `{name}`" for name in names), ""]
                (target / "README.md").write_text("\n".join(lines), encoding="utf-8")
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, target)


def settings(all_pages: list[Path]) -> dict[str, Any]:
    """What mkdocs.yml has; JSON is YAML."""
    there = {page.as_posix() for page in all_pages}
    named = {page for part in PARTS.values() for page in part}
    parts = [{title: [page for page in part if page in there]} for title, part in PARTS.items()]
    parts.append({"More": sorted(there - named)})
    toggle = {"icon": "material/brightness-6", "name": "light or dark"}
    return {
        "site_name": "Fanlight", "docs_dir": "site-source/pages", "site_dir": SITE.name, "use_directory_urls": False,
        "nav": parts, "plugins": ["search"],
        "theme": {
            "name": "material", "font": False, "features": ["search.suggest", "content.code.copy"],
            "palette": [
                {"scheme": scheme, "media": f"(prefers-color-scheme: {shade})", "toggle": toggle}
                for scheme, shade in (("default", "light"), ("slate", "dark"))
            ],
        },
        "markdown_extensions": ["tables", "fenced_code", "toc", "pymdownx.highlight", "pymdownx.superfences"],
        # Anchors are checked by tests/test_docs.py, by the rules of the place where the pages are read most.
        "validation": {"links": {"not_found": "warn", "anchors": "ignore", "absolute_links": "warn"}},
    }


def main() -> int:
    all_pages = pages()
    copy(all_pages)
    configuration = SITE.parent / "mkdocs.yml"
    configuration.write_text(json.dumps(settings(all_pages), indent=1), encoding="utf-8")
    program = Path(sys.executable).with_name("zensical")
    command = [str(program), "build", "--strict", "--clean", "--config-file", configuration.name]
    done = subprocess.run(command, check=False, cwd=configuration.parent, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout + done.stderr, file=sys.stderr)
        return 1
    print(f"{SITE / 'index.html'}: {len(all_pages)} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
