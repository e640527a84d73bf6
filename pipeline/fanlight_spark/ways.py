"""When trips passed the points of a way, by the positions of their vehicles. Without Spark.

The longest of the trips is the way. Each position of the others is laid onto it, and between two positions a vehicle
moves evenly; it never goes back.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

AWAY: Final = 400  # metres: a position that is further from the way is not on it
BREAK: Final = 900  # seconds: between positions that are further apart nobody knows when a vehicle passed
OUTLIER: Final = 10  # times as far from the middle of all positions as half of them: that is none
EARTH: Final = 6_371_000  # metres


def line_passes(
    trips: NDArray[np.object_], at: Reals, latitude: Reals, longitude: Reals, step: int
) -> list[tuple[int, str, float]]:
    """(metres along the way, trip, seconds) of each trip and each point of the way that it passed."""
    north = np.radians(latitude) * EARTH
    # Flat enough for a town: east by the cosine of its middle.
    east = np.radians(longitude) * EARTH * np.cos(np.radians(np.median(latitude)))
    order = np.lexsort((at, trips))
    order = order[_likely(north, east)[order]]
    trips, at, north, east = trips[order], at[order], north[order], east[order]
    begins = np.flatnonzero(np.concatenate([[True], trips[1:] != trips[:-1]]))
    parts = [slice(a, b) for a, b in zip(begins, [*begins[1:], len(trips)], strict=True)]
    way = max(parts, key=lambda part: _length(north[part], east[part])[-1])
    along = _length(north[way], east[way])
    found: list[tuple[int, str, float]] = []
    for part in parts:
        place, away = _onto(north[part], east[part], north[way], east[way], along)
        on = away <= AWAY
        found += [(metres, trips[part.start], when) for metres, when in _times(place[on], at[part][on], step)]
    return found


def _likely(north: Reals, east: Reals) -> NDArray[np.bool_]:
    """Which positions are near the others: a receiver without satellites may say 0, 0, and a way there is long."""
    away = np.hypot(north - np.median(north), east - np.median(east))
    found: NDArray[np.bool_] = away <= OUTLIER * np.median(away)
    return found if found.any() else np.ones(len(north), np.bool_)


def _length(north: Reals, east: Reals) -> Reals:
    """Metres from the first position to each."""
    found: Reals = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(north), np.diff(east)))])
    return found


def _onto(north: Reals, east: Reals, way_north: Reals, way_east: Reals, along: Reals) -> tuple[Reals, Reals]:
    """Where on a way the nearest point to each position is, in metres from its begin, and how far away that is."""
    if len(along) < 2:
        return np.zeros(len(north)), np.hypot(north - way_north[0], east - way_east[0])
    across, up = np.diff(way_east), np.diff(way_north)
    square = np.maximum(across**2 + up**2, 1e-9)
    places, distances = np.empty(len(north)), np.empty(len(north))
    for row, (y, x) in enumerate(zip(north, east, strict=True)):
        share = np.clip(((x - way_east[:-1]) * across + (y - way_north[:-1]) * up) / square, 0, 1)
        away = np.hypot(way_east[:-1] + share * across - x, way_north[:-1] + share * up - y)
        nearest = int(np.argmin(away))
        places[row], distances[row] = along[nearest] + share[nearest] * np.sqrt(square[nearest]), away[nearest]
    return places, distances


def _times(place: Reals, at: Reals, step: int) -> list[tuple[int, float]]:
    """When a trip passed each point: for the first time, between two positions that are not too far apart in time."""
    if len(place) < 2:
        return []
    furthest = np.maximum.accumulate(place)
    found = []
    for metres in range(step * int(np.ceil(furthest[0] / step)), int(furthest[-1]) + 1, step):
        after = int(np.searchsorted(furthest, metres))
        if after == 0:
            if furthest[0] == metres:
                found.append((metres, float(at[0])))
            continue
        if at[after] - at[after - 1] <= BREAK:
            share = (metres - furthest[after - 1]) / (furthest[after] - furthest[after - 1])
            found.append((metres, float(at[after - 1] + share * (at[after] - at[after - 1]))))
    return found
