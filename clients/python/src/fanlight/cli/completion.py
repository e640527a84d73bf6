"""`fanlight completion`: what makes a shell complete this command's words, made by shtab from the parsers."""

import argparse
from importlib.util import find_spec
from typing import TYPE_CHECKING

from . import exits

if TYPE_CHECKING:
    from .parsing import Parser

SHELLS = ("bash", "zsh", "fish")
EXAMPLES = """\
examples:
  fanlight completion bash > ~/.local/share/bash-completion/completions/fanlight
  fanlight completion zsh > ~/.zfunc/_fanlight                 with fpath+=~/.zfunc before compinit, in ~/.zshrc
  fanlight completion fish > ~/.config/fish/completions/fanlight.fish
"""


def add_to(verbs: "argparse._SubParsersAction[Parser]", root: "Parser") -> None:
    """The verb. root: the parser of the whole command."""
    about = "write what makes a shell complete this command"
    verb = verbs.add_parser(
        "completion", help=about, description=f"{about[0].upper()}{about[1:]}.", epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    verb.set_defaults(root=root)


def run(options: argparse.Namespace) -> int:
    if find_spec("shtab") is None:
        raise ValueError("it needs shtab: pip install shtab")
    import shtab

    print(shtab.complete(options.root, shell=options.shell))
    return exits.OK
