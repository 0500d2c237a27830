"""`playhead learn` and `reindex` as a person runs them."""

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from playhead import PlayheadError
from playhead import __file__ as FACE
from playhead.proxy.cli import cli
from playhead.store import Store
from playhead.tape.diff.classify_differing_values import ValueClass
from playhead.tests.support.other_process import recording_elsewhere
from playhead.tests.support.process import playhead
from playhead.tests.support.recordings import ask, record_run
from playhead.timeline.learning.learn import Partnerless


def run(*arguments: str | Path) -> str:
    """Run a command in this process; give what it printed."""
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    if done.exception is not None:
        raise done.exception
    return done.stdout


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two recordings of one task."""
    folder = tmp_path / "store"
    with Store.open(folder) as opened:
        for name, own in (("one", "9f86d0818"), ("two", "3a7bd3e21")):
            record_run(opened, name, [ask({"request_id": own})])
    return folder


def test_learn_prints_json(store: Path) -> None:
    """The same as for people, with the snippet as one text."""
    found = json.loads(run("learn", "one", "two", "--store", store, "--json"))
    assert found["places"][0]["class"] == "id"
    assert found["snippet"].startswith("ignore:\n  - match:")
    assert found["would_match"] == found["aligned"] == 1


def test_learn_tries_its_rules_as_a_playback_would(store: Path) -> None:
    """What is asked once more than it was recorded is not answered, though an equal request is on the tape."""
    with Store.open(store) as opened:
        record_run(
            opened, "three", [ask({"request_id": "c0ffee254"}), ask({"request_id": "beef12345"})]
        )
    told = run("learn", "one", "three", "--store", store)
    assert "Tried with these rules: the tape of one answers 1 of the 2 requests of three." in told
    assert "The first that it does not answer: seq 2  POST https://api.test/v1/runs" in told
    tried = json.loads(run("learn", "one", "three", "--store", store, "--json"))["tried"]
    assert (tried["asked"], tried["served"], tried["first_refused"]["seq"]) == (2, 1, 2)


def test_learn_proposes_telemetry_and_tries_it(tmp_path: Path) -> None:
    """What it names is not counted as asked, and needs no rule."""
    with Store.open(tmp_path) as opened:
        for name, own in (("one", "9f86d081884c7d65"), ("two", "3a7bd3e2360a3d29")):
            url = "https://stats.test/v2/telemetry"
            body = {"event": "step_completed", "event_id": own, "session_id": own[::-1]}
            batch = [body | {"timestamp": time.time(), "sent_at": time.time()}]
            order = [body | {"event": "reboot", "timestamp": time.time(), "sent_at": time.time()}]
            other = f"{url}/events"
            asked = [ask(batch, b"", url), ask(order, b"", other), ask({"n": 1})]
            record_run(opened, name, asked)
    found = json.loads(run("learn", "one", "two", "--store", tmp_path, "--json"))
    assert found["telemetry"] == ["POST https://stats.test/v2/telemetry"]
    classes, _, rules = found["snippet"].partition("ignore:\n")
    assert classes == 'classes:\n  telemetry:\n    - "POST https://stats.test/v2/telemetry"\n'
    assert 'match: "POST https://stats.test/v2/telemetry"' not in rules
    assert found["telemetry_unproved"] == ["POST https://stats.test/v2/telemetry/events"]
    assert (found["would_match"], found["tried"]["asked"], found["tried"]["served"]) == (2, 2, 1)
    told = run("learn", "one", "two", "--store", tmp_path)
    assert "These look like telemetry" in told
    assert "Looks like telemetry: check." in told


@pytest.mark.parametrize(
    ("runs", "wrong"),
    [
        (("one", "tow"), "unknown run 'tow'"),
        (("one", "one"), "'one' was given twice"),
    ],
)
def test_learn_says_what_is_wrong_with_a_run(
    store: Path, runs: tuple[str, str], wrong: str
) -> None:
    """An error with a hint, no traceback."""
    with pytest.raises(PlayheadError, match=wrong) as caught:
        run("learn", *runs, "--store", store)
    assert caught.value.hint


def test_learn_waits_for_no_run_that_is_being_recorded(store: Path) -> None:
    """It says so, and how to end it."""
    with (
        recording_elsewhere(store, "open"),
        pytest.raises(PlayheadError, match="run 'open' is still being recorded") as caught,
    ):
        run("learn", "one", "open", "--store", store)
    assert caught.value.hint


def test_a_mistake_ends_learn_with_2(tmp_path: Path) -> None:
    """As with all commands that read."""
    done = playhead("learn", "one", "two", "--store", tmp_path / "none")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no store at" in done.stderr


def test_the_json_of_learn_is_documented(store: Path) -> None:
    """Each key and each class stands in the command's section."""
    page = (Path(FACE).parent / "docs" / "commands-rules.md").read_text()
    section = page.partition("## `playhead learn`\n")[2].partition("\n## ")[0]
    found = json.loads(run("learn", "one", "two", "--store", store, "--json"))
    for key in {*found, *found["places"][0], *Partnerless._fields}:
        assert f"`{key}`" in section, key
    for kind in ValueClass:
        assert f"| {kind.value} |" in section
