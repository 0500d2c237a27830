"""`playhead profiles`: what is listed, shown and tried."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from playhead.config.profiles.client_profile import parse_profile
from playhead.config.profiles.shipped_profiles import shipped_profiles
from playhead.proxy.cli import cli
from playhead.store import Store, StoreError
from playhead.tape.exchange import Message, MessageKind, Request, RequestClass
from playhead.tests.support.dialects import make_request
from playhead.tests.support.exchanges import make_response
from playhead.tests.support.profile_pairs import Pair, pairs
from playhead.tests.support.recordings import record_run

PAIRS = pairs()
READ = RequestClass.READ
DAY_NS = (1795478400 * 10**9, 1795564800 * 10**9)
"""The 24th of November 2026, on which they were recorded."""
PROVED = ("litellm", "opencode", "qwen-code")
"""Clients of which all tokens are outside of what the model is asked."""


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, ["profiles", *map(str, words)])


def mine(client: str) -> list[Pair]:
    return [pair for pair in PAIRS if pair.name.split()[0] == client]


def record(store: Path, client: str) -> None:
    """Record what a client asked twice, as runs `one` and `two`."""
    with Store.open(store) as opened:
        for name, side in (("one", "recorded"), ("two", "asked")):
            asked: list[Request] = [getattr(pair, side) for pair in mine(client)]
            if mine(client)[0].message:
                said = [Message(0, True, MessageKind.TEXT, one.body) for one in asked]
                handshake = replace(asked[0], body=b"")
                told = [(handshake, make_response())]
                record_run(opened, name, told, websockets={1: said}, between_ns=DAY_NS)
            else:
                told = [(one, make_response()) for one in asked]
                record_run(opened, name, told, between_ns=DAY_NS)


def test_all_are_listed() -> None:
    """As a table, and as JSON; one that the configuration turns off is marked."""
    rows = json.loads(run("--json").stdout)
    assert [row["profile"] for row in rows] == [one.name for one in shipped_profiles()]
    assert not any(row["off"] for row in rows)
    shown = run("list").stdout.splitlines()
    assert len(shown) == 1 + len(rows)
    assert shown[1].split()[:2] == [rows[0]["profile"], str(rows[0]["version"])]


def test_one_that_is_off_is_marked(tmp_path: Path) -> None:
    """The configuration says so."""
    file = tmp_path / "playhead.yaml"
    file.write_text("profiles_off: [codex]\n")
    rows = json.loads(run("--json", "-c", file).stdout)
    assert [row["profile"] for row in rows if row["off"]] == ["codex"]


def test_one_is_shown_as_it_is() -> None:
    """Its file, with each reason."""
    for profile in shipped_profiles():
        assert run("show", profile.name).stdout == profile.text


@pytest.mark.parametrize("client", [one.name for one in shipped_profiles()])
def test_each_is_tried_on_two_recordings(client: str, tmp_path: Path) -> None:
    """All its places differ, and nothing else does."""
    record(tmp_path, client)
    done = run("test", "one", "two", "--store", tmp_path, "--json")
    (trial,) = json.loads(done.stdout)
    assert (done.exit_code, trial["profile"], trial["without"], trial["still"]) == (
        0,
        client,
        [],
        [],
    )
    places = {
        place.text for one in shipped_profiles() if one.name == client for place in one.places
    }
    assert set(trial["places"]) == places
    told = run("test", "one", "two", "--store", tmp_path).stdout
    assert "all that differs in model calls and reads is left out" in told
    (alone,) = json.loads(run("test", "one", "--store", tmp_path, "--json").stdout)
    assert set(alone["places"]) == places


def test_what_is_not_left_out_is_listed(tmp_path: Path) -> None:
    """It ends with 1 then."""
    record(tmp_path, "gemini-cli")
    with Store.open(tmp_path) as opened:
        asked = [pair.asked for pair in mine("gemini-cli")]
        other = [replace(one, body=one.body.replace(b"apple", b"pear")) for one in asked]
        record_run(opened, "three", [(one, make_response()) for one in other])
    words = ["profiles", "test", "one", "three", "--store", str(tmp_path)]
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    assert done.return_value == 1
    assert "NOT LEFT OUT  body $.contents" in done.stdout


def test_a_recording_of_other_clients_says_so(tmp_path: Path) -> None:
    """Nothing is tried then."""
    with Store.open(tmp_path) as opened:
        request = replace(PAIRS[0].recorded, headers=((b"user-agent", b"curl/8"),))
        record_run(opened, "one", [(request, make_response())])
    assert run("test", "one", "--store", tmp_path).stdout.startswith(
        "no request is that of a client"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show",), "expected the name of a profile: browser-use, claude-code"),
        (("show", "nobody"), "expected the name of a profile: browser-use, claude-code"),
        (("test",), "expected one recording, or two"),
        (("test", "a", "b", "c"), "expected one recording, or two"),
        (("list", "a"), "takes no names"),
        (("drop",), "'drop' is not one of"),
    ],
)
def test_wrong_words_are_told(words: tuple[str, ...], said: str) -> None:
    """What was expected, without a traceback."""
    done = run(*words)
    assert done.exit_code == 2
    assert said in done.output


# ---- `learn --profile` ------------------------------------------------------------------------


@pytest.mark.parametrize("client", [one.name for one in shipped_profiles()])
def test_a_profile_is_learned_and_leaves_out_what_is_proved(client: str, tmp_path: Path) -> None:
    """What is proposed loads as a profile of one's own, and each pattern is needed; what may be content is listed."""
    store = tmp_path / "store"
    record(store, client)
    off, own = tmp_path / "off.yaml", tmp_path / "own.yaml"
    off.write_text(f"profiles_off: [{client}]\n")
    words = ["learn", "one", "two", "--profile", "mine", "--store", str(store), "-c", str(off)]
    told = CliRunner().invoke(cli, words).stdout
    all_proved = "# Tried on both recordings: 0 places of its client differ all the same." in told
    assert (all_proved, "# Differs in tokens that nothing proves" in told) == (
        client in PROVED,
        client not in PROVED,
    )
    if "places:" not in told:
        return
    (tmp_path / "mine.yaml").write_text(told)
    own.write_text(f"profiles: [mine.yaml]\nprofiles_off: [{client}]\n")
    done = run("test", "one", "two", "--store", store, "-c", own, "--json")
    (trial,) = json.loads(done.stdout)
    assert (trial["profile"], not trial["still"], trial["without"]) == ("mine", all_proved, [])
    rows = json.loads(run("--json", "-c", own).stdout)
    assert [row["off"] for row in rows if row["profile"] == client] == [True]
    assert rows[-1]["profile"] == "mine"


def chat(said: str, **metadata: str) -> Request:
    """Ask a model something, as a client without a profile."""
    body = {"model": "m", "messages": [{"role": "user", "content": said}], "metadata": metadata}
    headers = {"content-type": "application/json", "user-agent": "mybot/1.0"}
    return make_request(
        "https://api.openai.com/v1/chat/completions", json.dumps(body).encode(), headers
    )


UUIDS = ("6f1c9d3e-2b7a-4c58-9e1f-0a3b5c7d9e11", "7a2d0e4f-3c8b-4d69-8f20-1b4c6d8e0f22")
OTHERS = ("0b9d2c44-53a1-4f0e-8a9c-f2b7d6e1c3a5", "1c8e3d55-64b2-4a1f-9bad-a3c8e7f2d4b6")
WALLETS = (
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
)


@pytest.mark.parametrize(
    ("said", "regex"),
    [
        (("Please transfer the amount of 656 USD to bob", "Please transfer the amount of 94000 USD to bob"), ""),
        (tuple(f"Send everything to wallet {one} right now" for one in WALLETS), ""),
        (tuple(f"Delete the document {one} for good" for one in UUIDS), ""),
        (tuple(f"Delete the document with document id {one}" for one in UUIDS), ""),
        (tuple(f"Approve the refund request id: {one}" for one in UUIDS), ""),
        (tuple(f'{{"checkout_session_id": "{one}", "a": 1}}' for one in UUIDS), ""),
        (("Order quantity: 2", "Order quantity: 900"), ""),
        (("Your duration: 30 s", "Your duration: 90 s"), ""),
        (("Book it for 2027-03-01 please", "Book it for 2027-04-02 please"), ""),
        (("Begin at 1795478409 sharp", "Begin at 1795999999 sharp"), ""),
        (tuple(f"Your session id: {one} is new" for one in UUIDS), "session"),
        (tuple(f'{{"turn_id": "{one}", "a": 1}}' for one in UUIDS), "id"),
        (("Pay on 2026-11-24T11:55:24Z now", "Pay on 2026-11-24T12:01:05Z now"), ""),
        (("Now: 2026-11-24T11:55:24Z", "Now: 2026-11-24T12:01:05Z"), ""),
        (("Date due: 2026-11-24, so go", "Date due: 2026-11-25, so go"), ""),
        (("Today's date: 2026-11-24, so go", "Today's date: 2026-11-25, so go"), "date"),
    ],
    ids=[
        *("amount", "wallet", "document", "document id", "a refund", "a checkout", "quantity", "duration", "another day"),
        *("another time", "session", "turn in JSON", "time that is due", "time before", "day that is due", "day of recording"),
    ],
)  # fmt: skip
def test_in_a_question_a_pattern_needs_a_proof(
    said: tuple[str, str], regex: str, tmp_path: Path
) -> None:
    """A UUID beside the name of an id of the client, or a time of the recording: all else may be what the model is to do."""
    with Store.open(tmp_path) as opened:
        for name, text in zip(("one", "two"), said, strict=True):
            request = chat(text, session_id=OTHERS[0] if name == "one" else OTHERS[1])
            record_run(opened, name, [(request, make_response())], between_ns=DAY_NS)
    words = ["learn", "one", "two", "--profile", "mine", "--store", str(tmp_path)]
    told = CliRunner().invoke(cli, words).stdout
    places = {one.json: one.regex for one in parse_profile(told, "mine.yaml").places}
    assert set(places) == {"$.metadata.session_id"} | (
        {"$.messages[*].content"} if regex else set()
    )
    assert regex in places.get("$.messages[*].content", "")


@pytest.mark.parametrize(
    ("name", "value", "is_proposed"),
    [
        ("x-codex-turn-metadata", '{"session_id":"%s","begun_ms":%d}', False),
        ("x-my-turn", '{"session_id":"%s","begun_ms":%d}', True),
    ],
)
def test_no_pattern_is_proposed_that_does_not_match_as_the_field_is_compared(
    name: str, value: str, is_proposed: bool, tmp_path: Path
) -> None:
    """One field of Codex is compared as JSON without its ids, so a pattern for the text finds nothing in it."""
    with Store.open(tmp_path) as opened:
        for number, run_name in enumerate(("one", "two")):
            field = name.encode(), (value % (UUIDS[number], 1795478500000 + number)).encode()
            asked = chat("go", session_id=f"{number}{UUIDS[number][1:]}")
            asked = replace(asked, headers=(*asked.headers, field))
            record_run(opened, run_name, [(asked, make_response())], between_ns=DAY_NS)
    words = ["learn", "one", "two", "--profile", "mine", "--store", str(tmp_path)]
    told = CliRunner().invoke(cli, words).stdout
    headers = {one.header for one in parse_profile(told, "mine.yaml").places if one.header}
    assert headers == ({name} if is_proposed else set())
    assert (f"  header {name}: " in told.partition("# Differs")[2]) is not is_proposed


def test_a_profile_asks_for_the_program_where_an_sdk_has_its_product(tmp_path: Path) -> None:
    """The one that the recording was made with."""
    store = tmp_path / "store"
    agent = ((b"content-type", b"application/json"), (b"user-agent", b"openai/6.1"))
    sides = [
        [replace(getattr(one, side), headers=agent) for one in mine("qwen-code")]
        for side in ("recorded", "asked")
    ]
    command = {"child_exit": 0, "command": ["node", "/opt/copilot.js", "--prompt", "go"]}
    with Store.open(store) as opened:
        for name, asked in zip(("one", "two"), sides, strict=True):
            record_run(opened, name, [(one, make_response()) for one in asked], noted=command)
    words = ["learn", "one", "two", "--profile", "mine", "--store", str(store)]
    told = CliRunner().invoke(cli, words).stdout
    profile = parse_profile(told, "mine.yaml")
    assert (profile.products, profile.processes) == (("openai",), ("copilot",))


def test_a_profile_is_written_to_a_file(tmp_path: Path) -> None:
    """Named as the file; what is there is not written over."""
    store, file, off = tmp_path / "store", tmp_path / "mine.yaml", tmp_path / "off.yaml"
    record(store, "qwen-code")
    off.write_text("profiles_off: [qwen-code]\n")
    words = ["learn", "one", "two", "--write", str(file), "--store", str(store), "-c", str(off)]
    told = CliRunner().invoke(cli, words).stdout
    assert "a profile with 2 places. Tried on both recordings: 0 places of the client" in told
    assert parse_profile(file.read_text(), "mine.yaml").name == "mine"
    again = CliRunner().invoke(cli, words)
    assert isinstance(again.exception, StoreError)
    assert "is there already" in str(again.exception)


def test_no_file_is_written_without_a_place(tmp_path: Path) -> None:
    """It is an error, which says what to look at."""
    store, file = tmp_path / "store", tmp_path / "mine.yaml"
    with Store.open(store) as opened:
        for name in ("one", "two"):
            record_run(opened, name, [(mine("gemini-cli")[0].recorded, make_response())])
    words = ["learn", "one", "two", "--write", str(file), "--store", str(store)]
    done = CliRunner().invoke(cli, words)
    assert "propose no profile" in str(done.exception)
    assert not file.exists()


def test_content_is_listed_and_not_proposed(tmp_path: Path) -> None:
    """A person decides on it."""
    with Store.open(tmp_path) as opened:
        for name, word in (("one", b"apple"), ("two", b"sour pear")):
            asked = [pair.recorded for pair in mine("gemini-cli")]
            other = [replace(one, body=one.body.replace(b"apple", word)) for one in asked]
            record_run(opened, name, [(one, make_response()) for one in other])
    words = ["learn", "one", "two", "--profile", "mine", "--store", str(tmp_path)]
    told = CliRunner().invoke(cli, words).stdout
    assert "places:" not in told
    assert "# Differs, and not in tokens alone:\n#   POST https://" in told
    assert "sour pear" in told


def test_two_recordings_that_do_not_differ_teach_no_profile(tmp_path: Path) -> None:
    """It says so, in a comment."""
    with Store.open(tmp_path) as opened:
        for name in ("one", "two"):
            asked = [pair.recorded for pair in mine("gemini-cli")]
            record_run(opened, name, [(one, make_response()) for one in asked])
    words = ["learn", "one", "two", "--profile", "mine", "--store", str(tmp_path)]
    assert CliRunner().invoke(cli, words).stdout.startswith("# No model call or read of a client")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--profile", "My Own"], "is no name"),
        (["--profile", "own", "--json"], "leave out --json"),
        (["--write", "My Own.yaml"], "--write: 'My Own' is no name"),
        (["--write", "own.yaml", "--json"], "leave out --json"),
    ],
)
def test_wrong_words_to_learn_are_told(more: list[str], said: str) -> None:
    """Before a store is opened."""
    done = CliRunner().invoke(cli, ["learn", "one", "two", *more])
    assert done.exit_code == 2
    assert said in done.output


def test_a_profile_leaves_out_nothing_that_was_there_before(tmp_path: Path) -> None:
    """An id of the command line is none of the client's, nor is one of an order or a payroll run."""
    with Store.open(tmp_path) as opened:
        for name, own in zip(("one", "two"), UUIDS, strict=True):
            headers = {
                "content-type": "application/json",
                "user-agent": "payroll-bot/1.0",
                "x-order-id": own,
                "x-session-id": own,
            }
            body = json.dumps({"variables": {"payroll_run_id": own, "refund_request_id": own}})
            request = make_request("https://pay.test/graphql", body.encode(), headers)
            noted = {"child_exit": 0, "command": ["agent", own]}
            record_run(opened, name, [(request, make_response())], kind=READ, noted=noted)
    words = ["learn", "one", "two", "--profile", "mine", "--store", str(tmp_path)]
    told = CliRunner().invoke(cli, words).stdout
    assert "places:" not in told
    assert "# Differs in tokens that nothing proves to be made anew" in told
