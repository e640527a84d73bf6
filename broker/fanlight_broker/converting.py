"""Another broker's configuration, sent by an operator and converted by a process of its own: `fanlightd import --sent`.

A configuration of 500 KB takes seconds; the loop does nothing for it but pass it on.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Final

from fanlight_broker.children import command_line
from fanlight_broker.config import Exit
from fanlight_broker.core.errors import FanlightError

SECONDS: Final = 30.0  # what takes longer is for `fanlightd import`


class Converting:
    def __init__(self) -> None:
        self._one = asyncio.Semaphore()  # process at a time

    async def mosquitto(self, configuration: str, files: Mapping[str, str]) -> bytes:
        """What is made of it, as JSON. Raises ValueError for what is wrong with it, and FanlightError."""
        name = "mosquitto.conf"
        sent = json.dumps({**files, name: configuration}).encode()
        async with self._one:
            process = await asyncio.create_subprocess_exec(
                *command_line("import", "--sent", name), stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )
            try:
                async with asyncio.timeout(SECONDS):
                    made, said = await process.communicate(sent)
            except TimeoutError:
                raise FanlightError(f"it takes longer than {SECONDS:g} s; `fanlightd import` has no limit") from None
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        if process.returncode == Exit.USAGE:
            raise ValueError(said.decode(errors="replace").strip().removeprefix("fanlightd: "))
        if process.returncode != Exit.OK:
            raise FanlightError("it could not be converted; `fanlightd import` on the machine of the files says more")
        return made
