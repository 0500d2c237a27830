"""Two recordings with each SDK of the same task: the requests of the second all match the tape of the first.

Two processes with another hash seed and another home, under the shipped rules alone.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from aiohttp import web

from playhead.config import Config
from playhead.tape.canonical import DEFAULT_IGNORE
from playhead.tape.cursor import Cursor, Hit
from playhead.tape.model import Exchange
from playhead.tape.redact import Redactor
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.mcp_server import McpOrigin
from playhead.tests.support.origins import Origin
from playhead.timeline.learn import learn

CLIENTS = Path(__file__).parent / "clients"
FULL = bool(os.environ.get("PLAYHEAD_FULL"))

REQUESTS = {
    "openai": 5,
    "anthropic": 3,
    "google": 3,
    "boto3": 6,
    "stripe": 4,
    "httpx": 5,
    "requests": 4,
    "aiohttp": 11,
}
"""How many requests each task makes at least: a client that gave up would match in all it asked."""

CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-fake",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}
    ],
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-fake",
    "content": [{"type": "text", "text": "yes"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-fake",
    "output": [],
    "status": "completed",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
CONTENT = {"candidates": [{"content": {"role": "model", "parts": [{"text": "yes"}]}, "index": 0}]}
CONVERSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "yes"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
    "metrics": {"latencyMs": 1},
}
LIST = {"object": "list", "data": [], "has_more": False, "url": "/v1/x"}
FILE = {
    "id": "file_1",
    "object": "file",
    "bytes": 9,
    "created_at": 1,
    "filename": "a.jsonl",
    "purpose": "batch",
    "status": "processed",
}

ANSWERS: tuple[tuple[str, object], ...] = (
    ("/chat/completions", CHAT),
    ("/v1/responses", RESPONSE),
    ("/v1/files", FILE),
    ("/count_tokens", {"input_tokens": 3}),
    ("/v1/messages", MESSAGE),
    (":generateContent", CONTENT),
    ("/converse", CONVERSE),
    ("/refunds", {"id": "re_1", "object": "refund", "amount": 1}),
    ("/v1/", LIST),
)
"""By what the path ends with or, last, holds."""


async def answer(request: web.Request) -> web.StreamResponse:
    """Say what each SDK wants to hear."""
    sent = await request.read()
    target = request.headers.get("x-amz-target", "")
    if request.path.endswith("/chat/completions") and json.loads(sent).get("stream"):
        chunk = {**CHAT, "object": "chat.completion.chunk"}
        chunk["choices"] = [{"index": 0, "delta": {"content": "yes"}, "finish_reason": None}]
        text = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
        return web.Response(text=text, content_type="text/event-stream")
    if target.startswith("AmazonSQS"):
        told: object = {"MessageId": "1", "MD5OfMessageBody": "5d41402abc4b2a76b9719d911017c592"}
    elif target:
        told = {}
    else:
        told = next((said for path, said in ANSWERS if path in request.path), None)
    if told is None:  # a plain client, or S3, which has no body after a PUT
        return web.Response(text="" if request.method == "PUT" else "fine")
    return web.json_response(told)


async def run_client(running: Running, run: str, folder: Path, *command: str) -> None:
    """Run a client in a process of its own: another hash seed, another home."""
    home = folder / run
    home.mkdir()
    proxy = running.url_for(run)
    environment = {
        **os.environ,
        "HTTP_PROXY": proxy,
        "HTTPS_PROXY": proxy,
        "http_proxy": proxy,
        "https_proxy": proxy,
        "NO_PROXY": "",
        "no_proxy": "",
        "SSL_CERT_FILE": str(running.ca),
        "HOME": str(home),
        "PYTHONHASHSEED": str(sum(map(ord, run))),
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        env=environment,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    assert process.returncode == 0, said.decode()[-3000:]
    await running.end(run)


def unmatched(running: Running, tape: str, other: str) -> tuple[list[Exchange], int]:
    """Ask a tape for the requests of another recording, in order; give what it does not hold."""
    store = running.store
    info = store.get_run(tape)
    cursor = Cursor(lambda key, after: store.next_use(info, key, after))
    missed, count = [], 0
    for exchange in store.exchanges(store.get_run(other)):
        count += 1
        found = cursor.find(exchange.fingerprint, exchange.request_class)
        if isinstance(found, Hit):
            cursor.take(exchange.fingerprint, found)
        else:
            missed.append(exchange)
    return missed, count


def explain(running: Running, first: str, second: str) -> object:
    """Say where two recordings differ: for a person who has to add a rule."""
    runs = [running.store.get_run(name) for name in (first, second)]
    return learn(running.store, runs[0], runs[1], (), Redactor(b"a test")).to_json()


@pytest.mark.parametrize("name", REQUESTS if FULL else ("openai", "boto3"))
async def test_the_second_recording_matches_the_first(name: str, tmp_path: Path) -> None:
    """By the shipped rules: 100 %."""
    assert DEFAULT_IGNORE
    with Origin({"/{path:.*}": answer}) as origin:
        async with running_engine(Config(store=tmp_path / "store")) as running:
            command = (str(CLIENTS / "sdk_tasks.py"), name, origin.url)
            async with asyncio.TaskGroup() as group:
                for run in ("first", "second"):
                    group.create_task(run_client(running, run, tmp_path, *command))
            missed, count = unmatched(running, "first", "second")
            assert missed == [], explain(running, "first", "second")
            assert count >= REQUESTS[name]


async def test_two_sessions_of_mcp_match(tmp_path: Path, certificates: Certificates) -> None:
    """Whatever the server called the session."""
    config = Config(store=tmp_path / "store", upstream_ca=certificates.root)
    with McpOrigin(certificates) as origin:
        async with running_engine(config) as running:
            command = ("-W", "ignore", str(CLIENTS / "mcp_client.py"), f"{origin.url}/mcp")
            for run in ("first", "second"):
                await run_client(running, run, tmp_path, *command)
            missed, count = unmatched(running, "first", "second")
            assert missed == [], explain(running, "first", "second")
            assert count >= 7
