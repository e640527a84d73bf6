"""Kill the bridges to and from Kafka many times, at places chosen by chance: `python -m tests.kafka.kills 200`.

Half of the kills are of a bridge from an archive, half of one to a broker. Prints a line a round; exit code 1 and the
seed of the round when something was lost, or was published twice.
"""

import argparse
import sys
import tempfile
from itertools import count
from pathlib import Path

from fanlight_bench.launch import Broker
from tests.kafka.peer import MockKafka
from tests.kafka.test_kafka_in import kill_inward
from tests.kafka.test_kafka_out import kill_outward
from tests.pipeline.conftest import fill

KILLS = 5  # of a round, each way


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.kills", description=__doc__)
    parser.add_argument("kills", nargs="?", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    options = parser.parse_args()
    numbers = count()
    done = 0
    with MockKafka() as kafka:
        while done < options.kills:
            number = next(numbers)
            seed = options.seed + number

            def fresh(name: str, number: int = number) -> str:
                return kafka.topic(f"t{number}-{name}")

            with tempfile.TemporaryDirectory() as name:
                work = Path(name)
                fill(work / "archive", 0, 1_000, roll=400)
                broker = Broker(archive=work / "received", archive_receipts=True)
                try:
                    kill_outward(work / "archive", kafka, fresh, work, kills=KILLS, seed=seed)
                    kill_inward(broker, work / "received", kafka, fresh, work, kills=KILLS, seed=seed)
                except AssertionError as error:
                    print(f"seed {seed}: {error}", file=sys.stderr)
                    return 1
                finally:
                    broker.terminate()
            done += 2 * KILLS
            print(f"seed {seed}: {2 * KILLS} kills, nothing lost, nothing published twice; {done} in all", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
