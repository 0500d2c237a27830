"""The openai package: sync and async, whole and streamed."""

import asyncio
import sys
from typing import Any

from openai import AsyncOpenAI, OpenAI

from playhead.tests.journeys.clients.transcript import digest, fields, say

BASE = sys.argv[1]
ASKED: dict[str, Any] = {
    "model": "gpt-fake",
    "messages": [{"role": "user", "content": "say something"}],
}


def sync_calls() -> None:
    with OpenAI(base_url=f"{BASE}/sync/v1", api_key="sk-not-a-real-key-123") as client:
        raw = client.chat.completions.with_raw_response.create(**ASKED)
        answer = raw.parse()
        say(
            "sync",
            status=raw.status_code,
            fields=fields(raw.headers.raw),
            body=digest(raw.content),
            text=answer.choices[0].message.content,
        )
        stream = client.chat.completions.create(**ASKED, stream=True)
        head = stream.response
        say(
            "sync-stream",
            status=head.status_code,
            fields=fields(head.headers.raw),
            events=[chunk.to_json(indent=None) for chunk in stream],
        )


async def async_calls() -> None:
    async with AsyncOpenAI(base_url=f"{BASE}/async/v1", api_key="sk-not-a-real-key-123") as client:
        raw = await client.chat.completions.with_raw_response.create(**ASKED)
        answer = raw.parse()
        say(
            "async",
            status=raw.status_code,
            fields=fields(raw.headers.raw),
            body=digest(raw.content),
            text=answer.choices[0].message.content,
        )
        stream = await client.chat.completions.create(**ASKED, stream=True)
        head = stream.response
        say(
            "async-stream",
            status=head.status_code,
            fields=fields(head.headers.raw),
            events=[chunk.to_json(indent=None) async for chunk in stream],
        )


sync_calls()
asyncio.run(async_calls())
