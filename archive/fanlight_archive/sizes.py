"""How many bytes a range of an archive takes: for readers who say how far behind they are, or read a bounded part.

A closed segment's size is in the manifest, so a whole one is counted without opening it. Of a part of one the batches
are asked, whose sizes are in their heads. Bytes are those of the files: compressed, if the archive is.
"""

from collections.abc import Callable, Iterator, Sequence

from fanlight_archive.manifest import Span
from fanlight_archive.segment import Place

Places = Callable[[Span], Sequence[Place]]  # the batches of a closed segment; none if it cannot be read


def size_between(spans: Sequence[Span], tail: Sequence[Place], first: int, end: int) -> int:
    """Bytes of the messages from `first` to before `end`; of a part of a segment, by its share of the messages.

    spans: the closed segments; tail: the batches of the open one.
    """
    pieces = [(span.first, span.end, span.size) for span in spans]
    pieces += [(place.first, place.end, place.size) for place in tail]
    found = 0.0
    for begin, stop, size in pieces:
        rows = min(stop, end) - max(begin, first)
        if rows > 0:
            found += size * rows / (stop - begin)
    return round(found)


def offset_after(spans: Sequence[Span], tail: Sequence[Place], places: Places, first: int, end: int, size: int) -> int:
    """The end of a range from `first` with at most `size` bytes, and at least a batch: not beyond `end`."""
    reached, left = first, size
    for begin, stop, taken in _pieces(spans, tail, places, first, size):
        if begin >= end or (taken > left and reached > first):
            break
        left -= taken
        reached = min(stop, end)
    else:
        return end  # all there is; what is missing before it takes no bytes
    return end if begin >= end else reached


def _pieces(
    spans: Sequence[Span], tail: Sequence[Place], places: Places, first: int, size: int
) -> Iterator[tuple[int, int, int]]:
    """(first offset, end, bytes): whole segments while they fit, else their batches, from the one with `first` on."""
    left = size
    for span in spans:
        if span.end <= first:
            continue
        if span.first >= first and span.size <= left:
            left -= span.size
            yield span.first, span.end, span.size
            continue
        for place in places(span) or [Place(0, span.size, span.first, span.end - span.first)]:
            if place.end > first:
                left -= place.size
                yield place.first, place.end, place.size
    for place in tail:
        if place.end > first:
            yield place.first, place.end, place.size
