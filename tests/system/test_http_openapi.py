"""/api/v1 does what its OpenAPI document says: schemathesis makes requests of it, good and bad, and checks the answers.

Left out are what ends or does not end: draining, which may stop the broker, and the stream of events. And one check: a
request may be as the document says and still be refused, as a filter that is none, or `to` with the name of no queue.
"""

import subprocess
import sys
from pathlib import Path

from tests.conftest import StartBroker

EXAMPLES = 3  # of each operation, beside those at its bounds: 2,000 requests in all


def test_the_api_is_as_its_document_says(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker(http_requests_per_second_max="10000")
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "st"), "run", f"{broker.http_url}/api/v1/openapi.json",
            "--seed", "1", "--max-examples", str(EXAMPLES), "--phases", "examples,coverage,fuzzing",
            "--exclude-path", "/events", "--exclude-path", "/drain", "--exclude-checks", "positive_data_acceptance",
            "--no-color", "--warnings", "off",
        ],
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-2_000:]
