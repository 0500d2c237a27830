"""`playhead replay --like` of an agent that speaks with its model over a WebSocket: the task is in a message of the client."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.tests.support.process import playhead
from playhead.tests.support.websocket import WebsocketOrigin

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

AGENT = """
import asyncio, json, os, sys, aiohttp
async def main():
    async with aiohttp.ClientSession(trust_env=True) as session:
        async with session.ws_connect(os.environ["ORIGIN"] + "/v1/responses") as talk:
            for word in [os.environ.get("TASK", sys.argv[1]), *sys.argv[2:]]:
                await talk.send_json({"type": "response.create", "model": "gpt-4o", "input": word})
                said = await talk.receive()
                if said.type is not aiohttp.WSMsgType.TEXT:
                    sys.exit(7)
                print(json.loads(said.data)["response"]["output"][0]["content"][0]["text"])
asyncio.run(main())
"""


async def answer(connection: "ServerConnection") -> None:
    """Answer each request with what it was asked."""
    count = 0
    async for message in connection:
        count += 1
        asked = json.loads(message)["input"]
        content = [{"type": "output_text", "text": f"Done: {asked}", "annotations": []}]
        output = {"type": "message", "id": f"m{count}", "role": "assistant", "content": content}
        response = {
            "id": f"r{count}",
            "object": "response",
            "status": "completed",
            "model": "gpt-4o",
            "output": [output],
            "usage": {"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100},
        }
        await connection.send(json.dumps({"type": "response.completed", "response": response}))


def test_the_task_in_a_message_is_found(tmp_path: Path) -> None:
    """Another task ends with the command to use; what no model call was answered of saved nothing."""
    store = tmp_path / "store"
    with WebsocketOrigin({"/v1/responses": answer}) as origin:
        env = {**os.environ, "ORIGIN": origin.url}

        def agent(*words: str) -> list[str]:
            return ["--store", str(store), "-q", "--", sys.executable, "-c", AGENT, *words]

        for run, task in (("refund", "Refund order 7."), ("poem", "Write a poem.")):
            done = playhead("record", "--run", run, *agent(task, "And more?"), env=env)
            assert done.returncode == 0, done.stderr
    like = ["replay", "--like", "--no-sandbox"]

    def replay(*words: str) -> tuple[int, list[str]]:
        done = playhead(*like, *agent(*words), env=env)
        return done.returncode, done.stderr.splitlines()

    code, told = replay("Refund order 7.", "And more?")
    assert (code, told[-1]) == (0, "saved 100 % | $0.0070 | 2200 tokens")
    # One call is answered from the tape, the second is another one.
    code, told = replay("Refund order 7.", "And less?")
    assert (code, told[-1]) == (121, "saved 100 % | $0.0035 | 1100 tokens")
    code, told = replay("Sing.", "And more?")
    assert code == 125
    assert "no recording that ended well is of this task: 'Sing.'" in "\n".join(told)
    # It is started against the newest, that of the poem, and no model call is answered.
    env["TASK"] = "Refund order 7."
    code, told = replay("from the environment", "And more?")
    assert code == 125
    assert "its task is that of 'refund', 'Refund order 7.'" in "\n".join(told)
    assert "hint: playhead replay refund -- " in "\n".join(told)
    bill = playhead("cost", "--store", store, "poem@1", "poem@2", "--json")
    saved = json.loads(bill.stdout)["saved"]
    assert (saved["calls"], saved["input_tokens"]) == (0, 0)
