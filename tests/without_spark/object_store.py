"""An S3 on the loopback, for tests: moto's server, a process that ends when its standard input does."""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SERVER = """
import sys
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("http://%s:%d" % server.get_host_and_port(), flush=True)
sys.stdin.read()
server.stop()
"""
KEYS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": secrets.token_hex(8), "AWS_REGION": "us-east-1"}


@contextmanager
def object_store(bucket: str) -> Iterator[dict[str, str]]:
    """The storage options of a store with a bucket."""
    quiet = {**os.environ, "PYTHONWARNINGS": "ignore"}
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, env=quiet,
    ) as server:  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            options = {**KEYS, "AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true"}
            make_bucket(url, bucket)
            yield options
        finally:
            server.stdin.close()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()


def make_bucket(url: str, bucket: str) -> None:
    import boto3  # type: ignore[import-untyped, unused-ignore]

    client = boto3.client(
        "s3", endpoint_url=url, aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"], region_name=KEYS["AWS_REGION"],
    )  # fmt: skip
    client.create_bucket(Bucket=bucket)
