"""Without asyncio: the same names, blocking.

    python sync_client.py [fanlight://127.0.0.1:7420]
"""

import sys
import threading

import fanlight.sync


def answer_one(client: fanlight.sync.Client, ready: threading.Event) -> None:
    with client.subscribe("time.zone", after=1) as questions:
        ready.set()
        for question in questions:
            question.respond(b"UTC")


def main(url: str) -> None:
    with fanlight.sync.connect(url, name="blocking") as client:
        with client.subscribe("log.*", after=3) as lines:
            client.publish_many(("log.app", f"line {number}".encode()) for number in range(3))
            for message in lines:
                print(message.payload.decode())
        ready = threading.Event()
        thread = threading.Thread(target=answer_one, args=(client, ready))
        thread.start()
        ready.wait()
        print(client.request("time.zone", timeout=2).payload.decode())
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else fanlight.sync.DEFAULT_URL)
