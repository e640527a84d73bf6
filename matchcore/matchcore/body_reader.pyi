from collections.abc import Mapping
from typing import final

from matchcore.fields import Attributes

__all__ = ["BODY_FORMATS", "BodyCounts", "BodyReader", "body_format"]

BODY_FORMATS: Mapping[str, int]

def body_format(content_type: str) -> int: ...

@final
class BodyCounts:
    decoded: int
    malformed: int
    too_large: int

class BodyReader:
    counts: BodyCounts
    def __init__(self, attributes: Attributes, counts: BodyCounts) -> None: ...
