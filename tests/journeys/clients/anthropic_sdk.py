"""The anthropic package: sync and async, whole and streamed."""

import asyncio
import sys
from typing import Any

from anthropic import Anthropic, AsyncAnthropic

from playhead.tests.journeys.clients.transcript import digest, fields, say

BASE = sys.argv[1]
ASKED: dict[str, Any] = {
    "model": "claude-fake",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "say something"}],
}


def sync_calls() -> None:
    with Anthropic(base_url=f"{BASE}/sync", api_key="sk-ant-not-a-real-key-123") as client:
        raw = client.messages.with_raw_response.create(**ASKED)
        say(
            "sync",
            status=raw.status_code,
            fields=fields(raw.headers.raw),
            body=digest(raw.http_response.content),
            text=raw.parse().to_json(indent=None),
        )
        with client.messages.stream(**ASKED) as stream:
            events = [event.to_json(indent=None) for event in stream]
            head = stream.response
            say(
                "sync-stream",
                status=head.status_code,
                fields=fields(head.headers.raw),
                events=events,
                text=stream.get_final_text(),
            )


async def async_calls() -> None:
    async with AsyncAnthropic(
        base_url=f"{BASE}/async", api_key="sk-ant-not-a-real-key-123"
    ) as client:
        raw = await client.messages.with_raw_response.create(**ASKED)
        say(
            "async",
            status=raw.status_code,
            fields=fields(raw.headers.raw),
            body=digest(raw.http_response.content),
            text=(await raw.parse()).to_json(indent=None),
        )
        async with client.messages.stream(**ASKED) as stream:
            events = [event.to_json(indent=None) async for event in stream]
            head = stream.response
            say(
                "async-stream",
                status=head.status_code,
                fields=fields(head.headers.raw),
                events=events,
                text=await stream.get_final_text(),
            )


sync_calls()
asyncio.run(async_calls())
