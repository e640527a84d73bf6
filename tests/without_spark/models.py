"""A model of a load, for the tests of what makes loads and of what learns them."""

from fanlight_spark.jobs.load_model import PROBABILITIES, Kind, Level, Model

SIZES = tuple(round(100 + 200 * each, 3) for each in PROBABILITIES)  # even from 100 to 300 bytes
PLANT = Kind(
    root="plant", share=0.75, topics=240, exponent=0.9, exponent_error=0.0, sizes=SIZES, mean_bytes=200.0,
    levels=(Level(1, 1, ("plant",)), Level(4, 4, ("north", "south", "east", "west")), Level(40, 10), Level(240, 6)),
    publishers=40, publishers_per_topic=1.0,
)  # fmt: skip
PRICES = Kind(
    root="stock", share=0.25, topics=50, exponent=0.0, exponent_error=0.0, sizes=(64.0,) * len(PROBABILITIES),
    mean_bytes=64.0, levels=(Level(1, 1, ("stock",)), Level(50, 50)), publishers=2, publishers_per_topic=2.0,
)  # fmt: skip
MODEL = Model(
    messages=30_000, seconds=60.0, interval=1.0, rates=(200.0,) * 30 + (800.0,) * 30, gap_variation=1.5,
    kinds=(PLANT, PRICES),
)  # fmt: skip
