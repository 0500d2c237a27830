"""A recorded model call is sent again without its agent: to its own host, as often as asked, and nothing else is."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiohttp import web

from playhead.proxy.cli import main
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import playhead

MESSAGES = "/v1/messages"
SECRET = "sk-ant-api03-Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2"


class Model:
    """A model that says `no` to each third call, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.answers = 1 << 30
        """So many calls; what is asked after them is never answered."""
        self._numbers = count()

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append((request.headers.get("x-api-key", ""), body))
        if len(self.asked) > self.answers:
            await asyncio.Event().wait()
        text = "no" if next(self._numbers) % 3 == 2 else "yes"
        content = [{"type": "text", "text": text}]
        usage = {"input_tokens": 10, "output_tokens": 1}
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"]}
        return web.json_response(
            {**head, "content": content, "stop_reason": "end_turn", "usage": usage}
        )


class World(NamedTuple):
    """A model, and a store with a tape of one call and one read."""

    model: Model
    origin: Origin
    store: Path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One recording for all."""
    folder, model = tmp_path_factory.mktemp("ask"), Model()

    async def read(_: web.Request) -> web.Response:
        return web.json_response({})

    with Origin({MESSAGES: model.answer, "/orders": read}) as origin:
        agent = folder / "agent.py"
        agent.write_text(
            "import sys\n"
            "from playhead.tests.support.refund_agent import send_by_urllib as send\n"
            f"fields = {{'x-api-key': {SECRET!r}, 'anthropic-version': '2023-06-01'}}\n"
            "body = {'model': 'claude-opus-4-5', 'max_tokens': 9, 'system': 'old',"
            " 'messages': [{'role': 'user', 'content': 'ok?'}]}\n"
            "send('GET', sys.argv[1] + '/orders', None)\n"
            f"send('POST', sys.argv[1] + {MESSAGES!r}, body, fields)\n"
        )
        words = ("--store", folder / "store", "--run", "tape", "-q", "--")
        done = playhead("record", *words, sys.executable, agent, origin.url)
        assert done.returncode == 0, done.stderr
        assert len(model.asked) == 1
        yield World(model, origin, folder / "store")


_KEY = ("--key-env", "ANTHROPIC_API_KEY")
"""The model is at no host of its provider."""


def ask(world: World, capfd: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run the command; give its code, what it printed, and what it said."""
    world.model.asked.clear()
    with pytest.raises(SystemExit) as ended:
        main(["ask", "--store", str(world.store), *_KEY, *map(str, words)])
    told = capfd.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, told.out, told.err


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)


def test_a_call_is_sent_again_and_its_answers_are_counted(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    """As it was recorded, with a key of today; the agent's other requests are not sent."""
    code, out, err = ask(world, capfd, "tape", 2, "--times", 3, "--yes", "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document["recorded_answer"] == '"yes"'
    found = {row["answer"]: (row["count"], row["recorded"]) for row in document["answers"]}
    assert found == {'"yes"': (2, True), '"no"': (1, False)}
    assert [key for key, _ in world.model.asked] == [SECRET] * 3
    assert {body["system"] for _, body in world.model.asked} == {"old"}
    assert len(document["runs"]) == len(set(document["runs"])) == 3
    assert "/orders" not in "".join(world.origin.requests[2:])
    assert "is sent to 127.0.0.1 again, 3 times" in err
    assert "with the key of ANTHROPIC_API_KEY, which 127.0.0.1 gets" in err
    assert "price: as recorded 1 call" in err
    kept = b"".join(path.read_bytes() for path in world.store.rglob("*") if path.is_file())
    assert SECRET.encode() not in kept


def test_another_model_and_prompt_are_asked(
    world: World, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """And nothing else of the call is another."""
    (tmp_path / "new.txt").write_text("new")
    words = ("tape", 2, "--yes", "--model", "claude-x", "--system", tmp_path / "new.txt")
    code, out, err = ask(world, capfd, *words)
    assert code == 0, err
    ((_, body),) = world.model.asked
    assert (body["model"], body["system"], body["max_tokens"]) == ("claude-x", "new", 9)
    assert "1 of 1" in out
    assert "another model: claude-x" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("tape", 2), "say --yes"),
        (("tape", 1, "--yes"), "is no call of a model"),
        (("tape", 9, "--yes"), "has no such exchange"),
        (("nobody", 1, "--yes"), "nobody"),
        (("tape", 2, "--yes", "--key-env", "NO_SUCH_KEY"), "NO_SUCH_KEY is not set"),
        (("tape", 2, "--yes", "--edit", "--model", "m"), "edit the whole call"),
        (("tape", 2, "--yes", "--system", "nowhere.txt"), "cannot be read"),
        (("tape", 2, "--yes", "--cap", "0"), "no amount of US dollars above 0"),
        (("tape", 2, "--yes", "--times", "0"), "--times"),
    ],
)
def test_nothing_is_sent_where_something_is_wrong(
    world: World,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: tuple[object, ...],
    says: str,
) -> None:
    """It says what, and the model hears nothing."""
    monkeypatch.chdir(tmp_path)
    code, out, err = ask(world, capfd, *words)
    assert (code, says in " ".join(err.split())) == (2, True), err
    assert out == ""
    assert world.model.asked == []


def test_no_key_is_sent_to_a_host_that_is_not_its_own(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    """Unless it is named."""
    world.model.asked.clear()
    with pytest.raises(SystemExit) as ended:
        main(["ask", "--store", str(world.store), "tape", "2", "--yes"])
    err = capfd.readouterr().err
    assert ended.value.code == 2
    assert "--key-env" in err
    assert world.model.asked == []


NO_ROOM = "the cap of 0.0003 USD has no room for another call: 0.0002 USD are used"


def test_a_cap_that_ends_it_is_said(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    """With what was not sent because of it, and with 121; a cap that has room for all calls ends nothing."""
    words = ("tape", 2, "--cap", "0.0003", "--yes")
    # One call is 0.000075 USD, and could be 0.00013; amounts are shown rounded.
    code, out, err = ask(world, capfd, *words, "--times", 5, "--json")
    assert code == 121, err
    document = json.loads(out)
    assert len(world.model.asked) == len(document["runs"]) == 2
    assert document["refused"] == [NO_ROOM] * 3
    code, out, err = ask(world, capfd, *words, "--times", 5)
    assert code == 121
    assert f"refused 3: {NO_ROOM}" in out
    assert "stopped after 2 of 5: the cap was reached" in err
    assert ask(world, capfd, *words, "--times", 2)[0] == 0


def test_an_interrupted_one_says_what_was_sent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calls with their price, and one that nobody has waited for."""
    world.model.asked.clear()
    monkeypatch.setattr(world.model, "answers", 2)
    command = [sys.executable, "-m", "playhead.proxy.cli", "ask", "--store", str(world.store)]
    words = [*_KEY, "tape", "2", "--times", "5", "--yes"]
    with subprocess.Popen(command + words, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 60
        while len(world.model.asked) < 3 and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "interrupted after 2 of 5, and one more was under way" in said
    assert "2 calls, 0.000150 USD; runs tape@" in said


@pytest.mark.parametrize("inject", ["status, status: 503", "reset"])
def test_a_fault_of_ours_is_no_answer(
    world: World, capfd: pytest.CaptureFixture[str], tmp_path: Path, inject: str
) -> None:
    """The call was not sent: that is said, with 121."""
    rule = f"{{match: '* {world.origin.url}/*', inject: {inject}, name: busy}}"
    (tmp_path / "c.yaml").write_text(f"faults: [{rule}]\n")
    words = ("--config", tmp_path / "c.yaml", "tape", 2, "--times", 2, "--yes", "--json")
    code, out, err = ask(world, capfd, *words)
    assert code == 121, err
    document = json.loads(out)
    assert (document["answers"], world.model.asked) == ([], [])
    assert len(document["refused"]) == 2
    assert document["refused"][0].startswith("it was not sent: ")
    assert "busy" in document["refused"][0]


def test_a_host_that_is_not_there_was_sent_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """So it is no answer either."""
    origin, store = _record_beside(tmp_path, USAGE)
    origin.stop()
    with pytest.raises(SystemExit) as ended:
        main(["ask", "--store", str(store), *_KEY, "tape", "1", "--yes", "--json"])
    document = json.loads(capfd.readouterr().out)
    assert ended.value.code == 121
    assert (document["answers"], len(document["refused"])) == ([], 1)


def _record_beside(
    folder: Path, more: dict[str, Any], model: str = "claude-opus-4-5"
) -> tuple[Origin, Path]:
    """Record one call of a model that says no more of itself than this; the model goes on."""

    async def answer(request: web.Request) -> web.Response:
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": model}
        said = {"content": [{"type": "text", "text": "yes"}], "stop_reason": "end_turn"}
        return web.json_response({**head, **said, **more})

    origin = Origin({MESSAGES: answer}).__enter__()
    agent = (
        "import sys\n"
        "from playhead.tests.support.refund_agent import send_by_urllib as send\n"
        "body = {'model': sys.argv[2], 'max_tokens': 9, 'messages': [{'role': 'user', 'content': 'ok?'}]}\n"
        f"send('POST', sys.argv[1] + {MESSAGES!r}, body, {{'anthropic-version': '2023-06-01'}})\n"
    )
    words = ("--store", folder / "store", "--run", "tape", "-q", "--")
    command = (sys.executable, "-c", agent, origin.url, model)
    done = playhead("record", *words, *command)
    assert done.returncode == 0, done.stderr
    return origin, folder / "store"


USAGE = {"usage": {"input_tokens": 10, "output_tokens": 1}}


@pytest.mark.parametrize(
    ("model", "more", "shown", "told"),
    [
        ("claude-opus-4-5", {}, "2 calls, ≥ 0 USD;", ("0", 0, 2, "0")),
        ("acme-9", USAGE, "2 calls, ? USD (2 of unknown price);", ("0", 2, 0, "0")),
        ("claude-opus-4-5", USAGE, "2 calls, 0.000150 USD;", ("0.000150", 0, 0, "0")),
    ],
)
def test_what_a_call_cost_that_does_not_say_it_is_not_nothing(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    model: str,
    more: dict[str, Any],
    shown: str,
    told: tuple[str, int, int, str],
) -> None:
    """It is shown as `playhead cost` shows it."""
    said, document = _ask_twice(tmp_path, capfd, more, model)
    assert f"playhead: {shown} runs tape@" in said
    found = (document[key] for key in ("usd", "unpriced", "at_least", "estimated_usd"))
    assert tuple(found) == told


def test_under_a_cap_what_a_call_may_have_cost_is_estimated(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """And said to be so."""
    said, told = _ask_twice(tmp_path, capfd, {}, "claude-opus-4-5", "--cap", "1")
    assert (told["at_least"], told["estimated_usd"]) == (0, told["usd"])
    assert float(told["usd"]) > 0
    assert f"2 calls, ~ {told['usd']} USD (" in said
    assert "of it estimated);" in said


def _ask_twice(
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    more: dict[str, Any],
    model: str,
    *words: str,
) -> tuple[str, dict[str, Any]]:
    """Ask twice, and again with --json; give what is said, and told."""
    origin, store = _record_beside(folder, more, model)
    found = []
    try:
        for form in ((), ("--json",)):
            all_words = ("tape", "1", "--times", "2", "--yes", *words, *form)
            with pytest.raises(SystemExit) as ended:
                main(["ask", "--store", str(store), *_KEY, *all_words])
            found.append(capfd.readouterr())
            assert ended.value.code == 0, found[-1].err
    finally:
        origin.stop()
    document: dict[str, Any] = json.loads(found[1].out)
    return found[0].err, document
