"""Man pages from `--help`: `make man` writes one for each command into a folder.

    make_man.py FOLDER
"""

import sys
from pathlib import Path

from argparse_manpage.manpage import Manpage

from fanlight.cli.arguments import parser as client
from fanlight_broker import __version__
from fanlight_broker.cli import parser as broker

PAGES = {"fanlight.1": client, "fanlightd.8": broker}


def page(name: str) -> str:
    """The page of this file name, as troff."""
    section = name.rpartition(".")[2]
    made = Manpage(
        PAGES[name](), _data={"project_name": "Fanlight", "version": __version__, "manual_section": section,
                              "manual_title": "Fanlight"}, format="single-commands-section",
    )  # fmt: skip
    summary = made.parser.description.strip().partition("\n")[0].rstrip(".")
    head = f".SH NAME\n{made.parser.prog}"
    text = str(made)
    assert head in text
    # mandb wants a line `name - summary` (man-pages(7)), which argparse-manpage writes for some forms of a page only.
    return text.replace(head, f"{head} \\- {summary}", 1)


def main(folder: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in PAGES:
        (Path(folder) / name).write_text(page(name), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
