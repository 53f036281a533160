"""Clients that watch a server, in a process of their own: python -m benchmarks.server.watching.

Each opens a WebSocket as the studio does, asks for the picture and two samples, and reads.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress

from websockets.asyncio.client import connect


async def watch(url: str, token: str, arcs: list[str], frames: list[int], number: int) -> None:
    """Read and count frames."""
    wanted = {"picture": True, "samples": [{"arc": arc, "limit": 100} for arc in arcs]}
    headers = {"Authorization": f"Bearer {token}"}
    async with connect(f"{url}/api/v1/live", additional_headers=headers, max_size=None) as socket:
        await socket.send(json.dumps(wanted))
        await socket.recv()
        sys.stdout.write("watching\n")
        sys.stdout.flush()
        async for _ in socket:
            frames[number] += 1


async def watch_all(url: str, count: int, arcs: list[str]) -> None:
    """Several at once, until SIGTERM; then each tells how many frames came.

    The token comes in the environment, as it should.
    """
    token, frames = os.environ["AURORAL_TOKEN"], [0] * count
    watching = asyncio.gather(*(watch(url, token, arcs, frames, n) for n in range(count)))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, watching.cancel)
    with suppress(asyncio.CancelledError):
        await watching
    sys.stdout.write("".join(f"{number}\n" for number in frames))


if __name__ == "__main__":
    asyncio.run(watch_all(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
