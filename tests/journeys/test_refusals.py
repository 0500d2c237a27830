"""What real SDKs and CLIs do with a refusal: each asks once, ends soon, and prints our message.

The table is that of docs/clients.md. The SDKs of the development environment are always tried; others where `just sdks` has
installed them.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest

from playhead.config import Config
from playhead.tape.exchange import RunId
from playhead.tests.support import prepared
from playhead.tests.support.client import Connection
from playhead.tests.support.engine import running_engine
from playhead.tests.support.needs import need
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.sdks import FRAMEWORKS, SDKS, find_python
from playhead.tests.support.websocket import WebsocketOrigin
from playhead.timeline import Receipt, build

CLIENTS = Path(__file__).with_name("clients")
BUILD = SDKS.parent
CLIS = BUILD / "clis" / "node_modules"
PATIENCE_S = 60


class Row(NamedTuple):
    """A client, how it is started, and how often it asks."""

    name: str
    package: str
    """Of Python: where it is installed, as `google/genai`; of a CLI its program below `CLIS`."""
    script: str = ""
    """Which client of the scripts; of a CLI nothing."""
    place: Path = SDKS
    ours: bool = False
    asked: int = 1
    """Different requests, each of them once."""
    fails: bool = True
    """Whether it ends with another code than 0."""


PYTHON = [
    Row("openai (Python), chat", "openai", "openai_chat", ours=True),
    Row("openai (Python), Responses", "openai", "openai_responses", ours=True),
    Row("anthropic (Python)", "anthropic", "anthropic", ours=True),
    Row("google-genai (Python)", "google/genai", "google_genai", ours=True),
    Row("boto3, Bedrock", "boto3", "boto3", ours=True),
    Row("stripe (Python)", "stripe", "stripe", ours=True),
    Row("LiteLLM, OpenAI", "litellm", "litellm"),
    Row("LiteLLM, Anthropic", "litellm", "litellm_anthropic"),
    Row("langchain-openai", "langchain_openai", "langchain_openai"),
    Row("OpenAI Agents SDK", "agents", "openai_agents"),
    Row("Pydantic AI", "pydantic_ai", "pydantic_ai"),
    Row("smolagents", "smolagents", "smolagents", FRAMEWORKS),
    Row("LlamaIndex", "llama_index", "llama_index", FRAMEWORKS),
]
NODE = [
    Row("openai (Node)", "openai", "openai"),
    Row("anthropic (Node)", "@anthropic-ai/sdk", "anthropic"),
    Row("Vercel AI SDK", "ai", "ai"),
    Row("LangChain.js", "@langchain/openai", "langchain"),
]
CODEX = "@openai/codex/bin/codex.js"
COMMANDS: dict[str, tuple[str, ...]] = {
    "Codex": (
        *("node", CODEX, "exec", "--skip-git-repo-check"),
        *("-c", 'model_provider="f"', "-c", 'model_providers.f.name="f"'),
        *("-c", 'model_providers.f.base_url="https://api.openai.com/v1"'),
        *("-c", 'model_providers.f.env_key="OPENAI_API_KEY"'),
        *("-c", 'model_providers.f.wire_api="responses"', "-m", "gpt-5", "hi"),
    ),
    "Gemini CLI": ("node", "@google/gemini-cli/bundle/gemini.js", "-m", "gemini-2.5-pro", "-p", "hi"),
    "Claude Code": ("@anthropic-ai/claude-code-linux-x64/claude", "-p", "hi"),
    "opencode": ("opencode-linux-x64/bin/opencode", "run", "hi"),
    "aider": (
        *("../../aider/bin/aider", "--model", "openai/gpt-4o", "--no-git", "--yes-always"),
        *("--no-check-update", "--analytics-disable", "--no-show-model-warnings"),
        *("--message", "hi"),
    ),
    "Qwen Code": ("node", ".bin/qwen", "--auth-type", "openai", "-m", "qwen3", "-p", "hi"),
}  # fmt: skip
CLI = [
    Row("Codex", CODEX),
    Row("Gemini CLI", "@google/gemini-cli/bundle/gemini.js"),
    Row("Claude Code", "@anthropic-ai/claude-code-linux-x64/claude"),
    Row("Qwen Code", ".bin/qwen"),
    Row("opencode", "opencode-linux-x64/bin/opencode", asked=2),  # a title is asked for, too
    Row("aider", "../../aider/bin/aider", fails=False),
]
OPENCODE = {
    "model": "f/m",
    "provider": {
        "f": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "https://api.openai.com/v1", "apiKey": "x"},
            "models": {"m": {"name": "m"}},
        }
    },
}


async def _answer(conversation: Conversation) -> None:
    await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


async def _ask(
    folder: Path,
    command: Sequence[str | Path],
    more: dict[str, str],
    imports: Sequence[str] = (),
) -> tuple[int, str, list[Receipt]]:
    """Run a client against a tape that does not have what it asks; give its exit code, its output and the receipt.

    imports: of what it is forked from.
    """
    home = folder / "home"
    home.mkdir()
    with RawOrigin(_answer) as origin:
        async with running_engine(Config(store=folder / "store")) as running:
            asking = await Connection.open(str(running.address))
            assert (await asking.ask(f"{origin.url}/page", credentials="tape:x")).status == 200
            await asking.close()
            assert await running.open_run("tape").settled(10)
            await running.end("tape")
            running.play()
            kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
            proxy, ca = running.url_for("tape"), str(running.ca)
            led = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
            trust = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
            process = prepared.start(
                command,
                imports=imports,
                env={
                    **kept,
                    **dict.fromkeys(led, proxy),
                    **dict.fromkeys(trust, ca),
                    "HOME": str(home),
                    "NO_COLOR": "1",
                    **more,
                },
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            with process:
                try:
                    said, _ = await asyncio.to_thread(process.communicate, None, PATIENCE_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise
            told = said.decode("utf-8", "replace")
            # What its helpers ask, such as git, may be runs of their own.
            names = [one.info.id for one in running.registry.open if one.info is not None]
            for name in names:
                await running.end(name)
            receipts = [build(running.store, running.store.runs.get(RunId(one))) for one in names]
    assert process.returncode is not None
    return process.returncode, " ".join(told.split()), receipts


def _check(row: Row, told: tuple[int, str, list[Receipt]]) -> None:
    code, said, receipts = told
    refused = [one for receipt in receipts for one in receipt.refused]
    asked = [one for one in refused if any(place in one["url"] for place in PLACES)]
    assert asked, said
    assert [one["repeats"] for one in asked] == [0] * row.asked, (said, refused)
    assert "Playhead refused" in said
    assert "not on the tape" in said
    assert (code != 0) is row.fails, said


PLACES = (
    *("/chat/completions", "/responses", "/messages", ":generateContent", "/converse"),
    *("/refunds", ":streamGenerateContent"),
)


@pytest.mark.parametrize("row", PYTHON, ids=lambda row: row.name)
async def test_an_sdk_asks_once_and_says_why(row: Row, tmp_path: Path) -> None:
    """No retry, and the exception's text has our message."""
    python = find_python(row.package, place=row.place, ours=row.ours)
    command = (python, CLIENTS / "refused.py", row.script)
    imports = prepared.SDKS if row.ours and row.package in ("openai", "anthropic") else ()
    more = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    _check(row, await _ask(tmp_path, command, more, imports))


TOOLS = {
    "urllib": "import urllib.request as u; u.urlopen('http://api.test/items/2')",
    "requests": "import requests as r; r.get('http://api.test/items/2').raise_for_status()",
    "httpx": "import httpx as h; h.get('http://api.test/items/2').raise_for_status()",
}


@pytest.mark.parametrize("client", TOOLS)
async def test_an_http_client_of_a_tool_says_who_refused(client: str, tmp_path: Path) -> None:
    """Its error has the status line and nothing of the body."""
    code, said, (receipt,) = await _ask(tmp_path, (sys.executable, "-c", TOOLS[client]), {})
    assert code == 1
    assert "Playhead refused this request" in said
    assert [one["repeats"] for one in receipt.refused] == [0]


@pytest.mark.parametrize("row", NODE, ids=lambda row: row.name)
async def test_an_sdk_for_node_asks_once_and_says_why(row: Row, tmp_path: Path) -> None:
    """No retry, and the error's message is ours."""
    modules, node = SDKS / "node_modules", need("node")
    if not (modules / row.package).exists():
        pytest.skip(f"{row.package} is not installed: run `just sdks`")
    script = tmp_path / "refused.mjs"
    script.write_bytes((CLIENTS / "refused.mjs").read_bytes())
    (tmp_path / "node_modules").symlink_to(modules)
    _check(row, await _ask(tmp_path, (node, script, row.script), {}))


@pytest.mark.parametrize("row", CLI, ids=lambda row: row.name)
async def test_a_cli_ends_soon_and_says_why(row: Row, tmp_path: Path) -> None:
    """A vendor's agent gives up at the first refusal, and its user reads our message."""
    command = COMMANDS[row.name]
    if not (CLIS / row.package).exists():
        pytest.skip(f"{row.name} is not installed: run `just sdks`")
    if command[0] == "node":
        need("node")
    found = [str(CLIS / word) if word == row.package else word for word in command]
    keys = {
        **dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "sk-test"),
        "OPENAI_BASE_URL": "https://api.openai.com/v1",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "OPENCODE_CONFIG": str(tmp_path / "opencode.json"),
    }
    (tmp_path / "opencode.json").write_text(json.dumps(OPENCODE))
    _check(row, await _ask(tmp_path, found, keys))


async def test_a_websocket_is_refused_in_the_words_of_its_protocol(tmp_path: Path) -> None:
    """Responses and Realtime say `error` with a message before they close; other WebSockets only close."""
    with WebsocketOrigin({}) as origin:
        async with running_engine(Config(store=tmp_path)) as running:
            for play in (False, True):
                heard = {}
                async with aiohttp.ClientSession() as session:
                    for path in ("/v1/responses", "/v1/realtime?model=m", "/rates"):
                        url, proxy = f"{origin.url}{path}", running.url_for("tape")
                        async with session.ws_connect(url, proxy=proxy) as one:
                            await one.send_str(json.dumps({"input": "another" if play else "a"}))
                            heard[path] = [(await one.receive()).data, (await one.receive()).data if play else ""]  # fmt: skip
                            await one.close()
                assert await running.open_run("tape@1" if play else "tape").settled(10)
                await running.end("tape@1" if play else "tape")
                running.play()
                origin.stop()
    for path in ("/v1/responses", "/v1/realtime?model=m"):
        event = json.loads(heard[path][0])
        assert (event["type"], event["status"]) == ("error", 400)
        assert event["error"]["code"] == "not_on_tape"
        assert event["error"]["param"] == "message[0].$.input"
        assert 'recorded "a", asked "another"' in event["error"]["message"]
        assert heard[path][1] == 1008
    assert heard["/rates"][0] == 1008
