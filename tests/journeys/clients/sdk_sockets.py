"""Tasks over WebSockets and gRPC: `sdk_sockets NAME BASE`. Says nothing, like `sdk_tasks`."""

import asyncio
import base64
import sys
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any
from uuid import uuid4

MESSAGES = ("one", '{"b": 1.0, "a": "ü"}', bytes(range(256)), "x" * 70_000)


def use_websockets(base: str) -> None:
    from websockets.asyncio.client import connect

    async def main() -> None:
        async with connect(f"{base}/echo/websockets") as socket:
            for message in MESSAGES:
                await socket.send(message)
                assert await socket.recv() == message

    asyncio.run(main())


def use_websockets_sync(base: str) -> None:
    from websockets.sync.client import connect

    with connect(f"{base}/echo/websockets_sync") as socket:
        for message in MESSAGES:
            socket.send(message)
            assert socket.recv() == message


def use_aiohttp_ws(base: str) -> None:
    import aiohttp

    async def main() -> None:
        async with (
            aiohttp.ClientSession(trust_env=True) as session,
            session.ws_connect(f"{base}/echo/aiohttp") as socket,
        ):
            for message in MESSAGES:
                if isinstance(message, bytes):
                    await socket.send_bytes(message)
                else:
                    await socket.send_str(message)
                assert (await socket.receive()).data == message

    asyncio.run(main())


def use_openai_realtime(base: str) -> None:
    from openai import AsyncOpenAI

    async def main() -> None:
        client = AsyncOpenAI(websocket_base_url=f"{base}/openai/v1", api_key="sk-not-a-real-key-1")
        async with client, client.realtime.connect(model="gpt-realtime-fake") as socket:
            assert (await socket.recv()).type == "session.created"
            session: Any = {"type": "realtime", "instructions": "be kind"}
            # Event ids are the caller's, a new one each time.
            await socket.session.update(session=session, event_id=f"evt_{uuid4()}")
            assert (await socket.recv()).type == "session.updated"
            sound = base64.b64encode(bytes(range(256)) * 8).decode()
            await socket.input_audio_buffer.append(audio=sound, event_id=f"evt_{uuid4()}")
            item: Any = {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "say something"}],
            }
            for _ in range(2):
                await socket.conversation.item.create(item=item, event_id=f"evt_{uuid4()}")
                await socket.response.create()
                while (await socket.recv()).type != "response.done":
                    pass

    asyncio.run(main())


def _channel(base: str) -> Any:
    import grpc

    return grpc.secure_channel(base, grpc.ssl_channel_credentials())


def use_grpc(base: str) -> None:
    with _channel(base) as channel:
        unary = channel.unary_unary("/test.Test/Unary")
        for request in (b"one", b"one", bytes(range(256))):
            assert unary(request, timeout=20, wait_for_ready=True) == request[::-1]
        assert len(list(channel.unary_stream("/test.Test/Stream")(b"go", timeout=20))) == 5
        parts = iter((b"a", b"b", b"c"))
        assert channel.stream_unary("/test.Test/ClientStream")(parts, timeout=20)[:1] == b"3"


def use_grpc_bidi(base: str) -> None:
    said: SimpleQueue[bytes | None] = SimpleQueue()

    def words() -> Iterator[bytes]:
        while (word := said.get()) is not None:
            yield word

    with _channel(base) as channel:
        answers = channel.stream_stream("/test.Test/Bidi")(words(), timeout=20)
        for number in range(1, 5):
            said.put(b"word %d" % number)
            assert next(answers).startswith(b"%d " % number)
        said.put(None)
        assert list(answers) == []


TASKS = {
    name.removeprefix("use_"): task for name, task in globals().items() if name.startswith("use_")
}

if __name__ == "__main__":
    TASKS[sys.argv[1]](sys.argv[2])
