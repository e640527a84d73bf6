"""Options of the data source: known ones only, for a misspelt one would quietly do something else."""

from collections.abc import Iterable, Mapping


def known(given: Mapping[str, str], names: Iterable[str], what: str) -> dict[str, str]:
    """The options by their names as documented, in whatever case they were given. Raises ValueError."""
    spelled = {name.lower(): name for name in names}
    unknown = sorted(name for name in given if name.lower() not in spelled)
    if unknown:
        has = ", ".join(sorted(spelled.values()))
        raise ValueError(f"no option of the {what} fanlight: {', '.join(unknown)}; it has {has}")
    return {spelled[name.lower()]: value for name, value in given.items()}


def positive(options: Mapping[str, str], name: str) -> int | None:
    """A number of messages; None if it is not given. Raises ValueError."""
    text = options.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ValueError(f"{name}={text!r}: give a number of messages, 1 or more")
    return int(text)


def one_of(options: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """One of the words; the first if it is not given. Raises ValueError."""
    text = options.get(name, choices[0]).lower()
    if text not in choices:
        raise ValueError(f"{name}={options[name]!r}: give {' or '.join(choices)}")
    return text
