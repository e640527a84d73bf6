"""What tests ask of selectors that are compiled."""

from collections.abc import Mapping

from matchcore.selector import Attribute, Like, Selector

def _holds(selector: Selector, mapping: Mapping[str, object] | Mapping[Attribute, object]) -> bool: ...
def _like_steps(text: bytes, pattern: Like) -> tuple[bool, int]: ...
