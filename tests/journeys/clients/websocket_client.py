"""An agent that talks over a WebSocket: each argument is a message; prints what comes back.

It knows of no proxy: whatever it uses comes from its environment.
"""

import asyncio
import sys

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed


async def main(url: str, *messages: str) -> int:
    """Say each message, and wait for an answer to each."""
    try:
        async with connect(url) as connection:
            for message in messages:
                await connection.send(message)
                print(await connection.recv(), flush=True)
    except ConnectionClosed as error:
        print(f"closed: {error.rcvd.code if error.rcvd else None}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
