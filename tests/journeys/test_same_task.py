"""`playhead replay --like`: the newest good recording of the task that the command turns out to be given."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from playhead.store import Store
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import playhead
from playhead.timeline.diff.acts import read_acts
from playhead.timeline.diff.compare import compare_acts
from playhead.timeline.state.calls_before import Exchanges

AGENT = """
import json, os, sys, urllib.request
def ask(path, body=None):
    request = urllib.request.Request(os.environ["ORIGIN"] + path, body, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode()
ask("/health")
body = {"model": "gpt-4o", "messages": [
    {"role": "system", "content": "You serve."}, {"role": "user", "content": sys.argv[1]}]}
print(json.loads(ask("/v1/chat/completions", json.dumps(body).encode()))["choices"][0]["message"]["content"])
"""


def agent(task: str, *more: str) -> list[str]:
    """An agent as a command line: it asks whether all is well, and a model for a task."""
    return ["--", sys.executable, "-S", "-c", AGENT, task, *more]


@pytest.fixture(scope="module")
def env() -> Iterator[dict[str, str]]:
    """What the agents are told: where the model is."""

    async def health(_: web.Request) -> web.Response:
        return web.Response(text="well")

    async def answer(request: web.Request) -> web.Response:
        said = (await request.json())["messages"][-1]["content"]
        message = {"role": "assistant", "content": f"Done: {said}"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
        body = {"id": "x", "object": "chat.completion", "model": "gpt-4o", "choices": [choice]}
        return web.json_response(body | {"usage": usage})

    with Origin({"/health": health, "/v1/chat/completions": answer}) as origin:
        yield {**os.environ, "ORIGIN": origin.url}


@pytest.fixture(scope="module")
def store(env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with good recordings of two tasks."""
    folder = tmp_path_factory.mktemp("like") / "store"
    for run, command in (
        ("refund", agent("Refund order 7.")),
        ("poem", agent("Write a poem.")),
    ):
        done = playhead("record", "--run", run, "--store", folder, "-q", *command, env=env)
        assert done.returncode == 0
    return folder


def replay(store: Path, env: dict[str, str], *command: str) -> tuple[int, str, list[str]]:
    """Replay a command against whatever recording fits; give code, output and what is said."""
    done = playhead("replay", "--like", "--no-sandbox", "--store", store, "-q", *command, env=env)
    return done.returncode, done.stdout, done.stderr.splitlines()


def test_a_task_in_a_new_command_is_found(store: Path, env: dict[str, str]) -> None:
    """Of a command that nobody recorded its words say which recording is of its task."""
    code, out, told = replay(store, env, *agent("Refund order 7.", "unseen"))
    assert (code, out) == (0, "Done: Refund order 7.\n")
    assert told[-1] == "saved 100 % | $0.0035 | 1100 tokens"
    with Store.open(store, readonly=True) as opened:
        tape, played = opened.runs.get("refund"), opened.runs.get("refund@1")
        sides = (read_acts(Exchanges(opened, run)) for run in (tape, played))
        compared = compare_acts(*sides)
        assert (compared.divergence, compared.counts) == (None, {"same": 2})


def test_a_command_of_another_task_is_not_started_twice(
    store: Path, env: dict[str, str], tmp_path: Path
) -> None:
    """What it did on this machine it would do once more; it is said which recording to name."""
    begun = tmp_path / "begun"
    told = {"BEGUN": str(begun), "TASK": "Refund order 7."}
    hidden = 'import os, sys; open(os.environ["BEGUN"], "a").write("once "); sys.argv[1] = os.environ["TASK"]'
    words = ["--", sys.executable, "-S", "-c", hidden + AGENT, "from the environment"]
    code, out, lines = replay(store, env | told, *words)
    assert (code, out, begun.read_text()) == (125, "", "once ")
    said = "\n".join(lines)
    assert "its task is that of 'refund', 'Refund order 7.', and it was started against" in said
    assert "hint: playhead replay refund -- " in said


def test_a_task_that_nobody_recorded_is_told(store: Path, env: dict[str, str]) -> None:
    """Nothing is played for another one."""
    code, out, told = replay(store, env, *agent("Sing."))
    assert (code, out) == (125, "")
    assert "no recording that ended well is of this task: 'Sing.'" in "\n".join(told)
