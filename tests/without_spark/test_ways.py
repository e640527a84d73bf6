"""Ways: passes by hand on a straight street, and those of real buses beside plain Python."""

import csv
import gzip
import math
from collections import defaultdict
from datetime import datetime
from itertools import pairwise

import numpy as np

from fanlight_spark.ways import AWAY, BREAK, EARTH, line_passes
from tests import require

Position = tuple[str, float, float, float]  # trip, seconds, metres north, metres east
LATITUDE = 30.0


def passed(positions: list[Position], step: int = 1_000) -> set[tuple[int, str, float]]:
    trips, at, north, east = zip(*positions, strict=True)
    latitude = LATITUDE + np.degrees(np.array(north) / EARTH)
    longitude = np.degrees(np.array(east) / EARTH / math.cos(math.radians(np.median(latitude))))
    found = line_passes(np.array(trips, object), np.array(at, float), latitude, longitude, step)
    return {(metres, trip, round(when, 3)) for metres, trip, when in found}


def test_a_trip_passes_each_point_between_two_positions() -> None:
    way = [("way", 100.0 * n, 500.0 * n, 0.0) for n in range(9)]  # 4 km in 800 s
    other = [("b", 1_000.0, 700.0, 30.0), ("b", 1_100.0, 1_300.0, -30.0), ("b", 1_160.0, 2_500.0, 0.0)]
    assert passed([*way, *other]) == {
        *((1_000 * n, "way", 200.0 * n) for n in range(5)),
        (1_000, "b", 1_050.0), (2_000, "b", 1_135.0),
    }  # fmt: skip


def test_a_position_off_the_way_and_a_long_silence_are_not_passed_over() -> None:
    way = [("way", 100.0 * n, 500.0 * n, 0.0) for n in range(9)]
    lost = [("b", 0.0, 700.0, 0.0), ("b", 10.0, 1_900.0, AWAY + 10.0), ("b", 100.0, 1_200.0, 0.0)]
    assert {each for each in passed([*way, *lost]) if each[1] == "b"} == {(1_000, "b", 60.0)}
    quiet = [("b", 0.0, 700.0, 0.0), ("b", BREAK + 1.0, 1_200.0, 0.0), ("b", BREAK + 81.0, 2_200.0, 0.0)]
    assert {each for each in passed([*way, *quiet]) if each[1] == "b"} == {(2_000, "b", BREAK + 65.0)}


def test_a_receiver_without_satellites_makes_no_way() -> None:
    way = [("way", 100.0 * n, 500.0 * n, 0.0) for n in range(9)]
    assert passed([*way, ("lost", 0.0, 0.0, 0.0), ("lost", 100.0, 3e6, 5e6), ("lost", 200.0, 1_000.0, 0.0)]) == {
        *((1_000 * n, "way", 200.0 * n) for n in range(5)), (0, "lost", 0.0), (1_000, "lost", 200.0)
    }  # fmt: skip


def test_a_vehicle_that_goes_back_has_passed_a_point_once() -> None:
    way = [("way", 100.0 * n, 500.0 * n, 0.0) for n in range(9)]
    back = [("b", 0.0, 800.0, 0.0), ("b", 40.0, 1_200.0, 0.0), ("b", 80.0, 800.0, 0.0), ("b", 120.0, 1_400.0, 0.0)]
    assert {each for each in passed([*way, *back]) if each[1] == "b"} == {(1_000, "b", 20.0)}


def test_passes_of_real_buses_are_those_of_plain_python() -> None:
    """The most frequent route towards each end: lists, and a nearest point of all stretches of the way."""
    path = require.data("transit") / "austin_vehicles_2017-04-18.csv.gz"
    by_line: dict[tuple[str, str], dict[str, list[tuple[float, float, float]]]] = defaultdict(lambda: defaultdict(list))
    with gzip.open(path, "rt", newline="") as lines:
        for row, _ in zip(csv.DictReader(lines), range(5_000), strict=False):
            at = datetime.fromisoformat(row["timestamp"]).timestamp()
            place = (at, float(row["latitude"]), float(row["longitude"]))
            by_line[(row["route_id"], row["trip_headsign"])][row["trip_id"]].append(place)
    for line in sorted(by_line, key=lambda line: -sum(map(len, by_line[line].values())))[:2]:
        trips = {trip: sorted(places) for trip, places in by_line[line].items()}
        flat = [(trip, *place) for trip, places in trips.items() for place in places]
        names, times, latitude, longitude = zip(*flat, strict=True)
        found = line_passes(np.array(names, object), np.array(times), np.array(latitude), np.array(longitude), 500)
        wanted = expected(trips, 500)
        assert len(wanted) > 20
        assert sorted(each[:2] for each in found) == sorted(each[:2] for each in wanted)
        for one, other in zip(sorted(found), sorted(wanted), strict=True):
            assert math.isclose(one[2], other[2], abs_tol=0.01)


def expected(trips: dict[str, list[tuple[float, float, float]]], step: int) -> list[tuple[int, str, float]]:
    latitudes = sorted(place[1] for places in trips.values() for place in places)
    count = len(latitudes)
    middle = (latitudes[(count - 1) // 2] + latitudes[count // 2]) / 2
    flat = {
        trip: [(at, math.radians(lat) * EARTH, math.radians(lon) * EARTH * math.cos(math.radians(middle)))
               for at, lat, lon in places] for trip, places in trips.items()
    }  # fmt: skip
    middles = [sorted(place[axis] for places in flat.values() for place in places) for axis in (1, 2)]
    centre = [(some[(count - 1) // 2] + some[count // 2]) / 2 for some in middles]
    away = sorted(math.dist(place[1:], centre) for places in flat.values() for place in places)
    most = 10 * (away[(count - 1) // 2] + away[count // 2]) / 2
    flat = {trip: [place for place in places if math.dist(place[1:], centre) <= most] for trip, places in flat.items()}
    lengths = {trip: sum(math.dist(a[1:], b[1:]) for a, b in pairwise(places)) for trip, places in flat.items()}
    way = [place[1:] for place in flat[min(trips, key=lambda trip: (-lengths[trip], trip))]]
    found: list[tuple[int, str, float]] = []
    for trip, places in flat.items():
        furthest, before, done = None, 0.0, False
        for at, y, x in places:
            along, metres, away = 0.0, 0.0, math.inf
            for a, b in pairwise(way):
                square = max(math.dist(a, b) ** 2, 1e-9)
                share = min(max(((y - a[0]) * (b[0] - a[0]) + (x - a[1]) * (b[1] - a[1])) / square, 0), 1)
                distance = math.dist((y, x), (a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])))
                if distance < away:
                    metres, away = along + share * math.sqrt(square), distance
                along += math.dist(a, b)
            if away > AWAY:
                continue
            if furthest is None:
                furthest = metres
                first = [(int(metres), trip, at)] if metres == int(metres) and int(metres) % step == 0 else []
            elif metres > furthest:
                if at - before <= BREAK:
                    points = range(step * math.ceil(furthest / step), math.ceil(metres) + 1, step)
                    speed = (metres - furthest) / (at - before)
                    found += [(point, trip, before + (point - furthest) / speed)
                              for point in points if furthest < point <= metres]  # fmt: skip
                furthest = metres
            if not done and len(places) > 1 and furthest is not None and at != places[0][0]:
                found, done = found + first, True
            before = at
    return found
