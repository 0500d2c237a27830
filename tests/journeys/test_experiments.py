"""Misuses of `bisect`, `sweep` and `explore`: each is told what is wrong before anything runs, and nothing leaves."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from playhead.proxy.cli import main
from playhead.store import Store
from playhead.tape.exchange import RequestClass
from playhead.tests.support.branch_cases import Words
from playhead.tests.support.experiment_cases import WORDS
from playhead.tests.support.origins import Origin
from playhead.tests.support.recordings import Asked, ask, record_run
from playhead.tests.support.refund_service import serve
from playhead.tests.support.replays import write_replay

CHAT = "/v1/chat/completions"


class World(NamedTuple):
    """A service that nobody is to ask, and a store with recordings of what it said."""

    service: Origin
    store: Path


def _talk(url: str, answers: str) -> list[Asked]:
    """Give a run of model calls, each with another question."""
    made = []
    for number, answer in enumerate(answers):
        message = {"role": "assistant", "content": answer}
        said = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        body = {"model": "gpt-4o", "messages": [{"role": "user", "content": f"question {number}"}]}
        made.append(ask(body, said, f"{url}{CHAT}"))
    return made


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One store for all that follows."""
    folder = tmp_path_factory.mktemp("experiments")
    with Origin({"/{tail:.*}": serve}) as service:
        made = World(service, folder / "store")
        with Store.open(made.store) as store:
            _fill(store, service.url)
        yield made


def _fill(store: Store, url: str) -> None:
    def record(name: str, answers: str, code: int, key: str = "one") -> None:
        noted = {"child_exit": code}
        record_run(store, name, _talk(url, answers), noted=noted, placeholders=key)

    record("bad", "xyz", 3)
    record("good", "abc", 0)
    record("twin", "xyz", 0)
    record("again", "abc", 0)
    record("again", "xyz", 3)
    record("twin-of-good", "abd", 0)
    record("worse", "abe", 4)
    record("foreign", "abc", 0, "another")
    carries = {"child_exit": 3, "command": ["touch", "planted"]}
    record_run(store, "carries", _talk(url, "xyz"), noted=carries)
    asked = [ask(answer=b"1", url=f"{url}/a"), ask(b"2", url=f"{url}/b")]
    record_run(store, "plain", asked, kind=RequestClass.READ, noted={"child_exit": 0})
    other = [ask(answer=b"1", url="https://elsewhere.test/nothing/alike")]
    record_run(store, "other", other, kind=RequestClass.READ, noted={"child_exit": 0})


@pytest.fixture(scope="module")
def replayed(world: World) -> World:
    """The same with a replay."""
    with Store.open(world.store) as store:
        asyncio.run(write_replay(store, store.runs.get("bad"), ()))
    return world


def test_there_are_sixty_misuses() -> None:
    """Each has a name of its own."""
    names = [case.name for case in WORDS]
    assert len(names) == len(set(names)) >= 60


def test_misused_words_are_refused_before_anything_runs(
    replayed: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Each with a sentence that says what is wrong; no run is made, and nobody is asked."""
    monkeypatch.chdir(tmp_path)
    with Store.open(replayed.store, readonly=True) as store:
        before = len(store.runs.all())
    wrong = [text for case in WORDS if (text := _refuse(replayed, case, tmp_path, capfd))]
    assert wrong == []
    with Store.open(replayed.store, readonly=True) as store:
        assert len(store.runs.all()) == before
    assert replayed.service.requests == []
    assert not (tmp_path / "planted").exists()


def _refuse(world: World, case: Words, folder: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """Give what is wrong with how words are refused; nothing where all is right."""
    file = folder / "FILE"
    file.write_text(case.text)
    name, *words = case.words
    with pytest.raises(SystemExit) as ended:
        main([name, "--store", str(world.store), "--no-sandbox", *words])
    said = " ".join(capfd.readouterr().err.split())
    if ended.value.code != 2 or case.says not in said:
        return f"{case.name}: {ended.value.code}: {said}"
    return ""
