"""Profiles of clients through the real proxy: what is served, how it is told, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from playhead.config import Classes, Config, IgnoreRule, Mode, parse_match
from playhead.config.profiles.client_profile import Profile, Unconditional
from playhead.config.profiles.client_profile_file import ProfileFile
from playhead.tape.canonical import canonical_request
from playhead.tape.exchange import Request
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.profile_pairs import Pair, pairs
from playhead.tests.support.story import Call, recorded
from playhead.tests.support.websocket import WebsocketOrigin
from playhead.timeline import Receipt, build, render_receipt

PAIRS = {pair.name.split()[0]: pair for pair in pairs()}
"""Of each client the last."""
CLAUDE = PAIRS["claude-code"]
CODEX = [pair for pair in pairs() if pair.name.startswith("codex ") and pair.message][-1]
SETTINGS = "GET /v1/settings"
SOME = Profile(
    "some-cli",
    2,
    "Some CLI",
    ("some-cli",),
    unconditional=(Unconditional(parse_match("GET *://*/v1/settings")),),
)


def call(request: Request, agent: str = "") -> Call:
    given = {name.decode(): value.decode() for name, value in request.headers}
    fields = {name: value for name, value in given.items() if name.lower() != "content-type"}
    if agent:
        fields["User-Agent"] = agent
        fields = {name: value for name, value in fields.items() if name != "user-agent"}
    return Call(f"{request.method} {request.target}", request.body, headers=fields)


def changed(request: Request, old: bytes, new: bytes) -> Call:
    assert old in request.body
    asked = call(request)
    return Call(asked.what, request.body.replace(old, new, 1), headers=asked.headers)


def line(receipt: Receipt, begins: str) -> str:
    return next((one for one in render_receipt(receipt).splitlines() if one.startswith(begins)), "")


@pytest.mark.parametrize(
    "pair", [pair for pair in PAIRS.values() if not pair.message], ids=lambda pair: pair.name
)
async def test_a_client_with_a_profile_is_served(pair: Pair, store_dir: Path) -> None:
    """Its next run asks with other tokens; the match is called `profile`, and the replay is faithful."""
    async with recorded(store_dir, [call(pair.recorded)]) as story:
        (said,) = await story.play([call(pair.asked)])
        receipt = await story.end()
        (again,) = await story.play([call(pair.recorded)])
        exact = await story.end()
    assert (said.status, again.status) == (200, 200)
    assert (receipt.faithful, dict(receipt.matched)) == (True, {"profile": 1})
    assert (exact.faithful, dict(exact.matched), line(exact, "profile ")) == (
        True,
        {"exact": 1},
        "",
    )
    name = pair.name.split()[0]
    (row,) = receipt.to_json()["profiles"]
    assert (row["profile"], row["requests"]) == (name, 1)
    count = len(row["places"])
    places = f"{count} place{'s' * (count != 1)}"
    assert line(receipt, "profile ") == f"profile {name} {row['version']}: {places} in 1 request"
    assert "1 by profile" in line(receipt, "served ")


async def test_what_stands_beside_a_token_is_refused(store_dir: Path) -> None:
    """A billing header with another version, and a message with another word."""
    version = changed(CLAUDE.asked, b"cc_entrypoint=sdk-cli", b"cc_entrypoint=cli")
    word = changed(CLAUDE.asked, b"one apple", b"two apples")
    async with recorded(store_dir, [call(CLAUDE.recorded)]) as story:
        said = await story.play([version, word])
        receipt = await story.end()
    assert [one.status for one in said] == [424, 424]
    assert said[0].divergence["differences"][0]["place"] == "body $.system[0].text"
    assert receipt.to_json()["unprofiled"] == []


async def test_a_profile_that_is_off_leaves_nothing_out(store_dir: Path) -> None:
    """And a tape whose index was made without it is indexed anew where it is on."""
    off = {"profiles_off": ("claude-code",)}
    async with recorded(store_dir, [call(CLAUDE.recorded)], recording=off) as story:
        (said,) = await story.play([call(CLAUDE.asked)])
        refused = await story.end()
        story.running.change(profiles_off=())
        (served,) = await story.play([call(CLAUDE.asked)])
        receipt = await story.end()
    assert (said.status, served.status) == (424, 200)
    assert refused.faithful is False
    assert dict(receipt.matched) == {"profile": 1}


async def test_rules_of_the_configuration_win(store_dir: Path) -> None:
    """What they ignore is not the profile's doing; what they make an effect is compared whole."""
    fields = ("x-claude-code-prompt-id", "x-claude-code-prev-tool-durations")
    ignore = IgnoreRule(
        parse_match("*://*"), json=("$.system", "$.metadata.user_id"), header=fields
    )
    async with recorded(store_dir, [call(CLAUDE.recorded)], ignore=(ignore,)) as story:
        (said,) = await story.play([call(CLAUDE.asked)])
        receipt = await story.end()
        effect = Classes(effect=(parse_match("POST *://*/v1/messages"),))
        story.running.change(ignore=(), classes=effect)
        (refused,) = await story.play([call(CLAUDE.asked)])
        await story.end()
    assert said.status == 200
    assert dict(receipt.matched) == {"canonical": 1}
    assert receipt.to_json()["profiles"] == []
    assert refused.headers.get("x-playhead", "").startswith(("stubbed", "refused")) or (
        refused.status == 424
    )


async def test_a_secret_that_a_profile_leaves_out_counts_in_an_effect(store_dir: Path) -> None:
    """A session's id, which redaction replaces, is another one now: of a model call that is nothing, of an effect it is."""
    qwen = PAIRS["qwen-code"]
    then, now = (
        Request(
            one.method,
            one.scheme,
            one.host,
            one.port,
            one.target,
            one.http_version,
            one.headers,
            json.dumps({"metadata": {"sessionId": session}}).encode(),
        )
        for one, session in (
            (qwen.recorded, "f3b1c2d4-5a6b-4c7d-8e9f-0a1b2c3d4e5f"),
            (qwen.asked, "0d9e8f7a-6b5c-4d3e-9f2a-1b0c9d8e7f6a"),
        )
    )
    async with recorded(store_dir, [call(then)]) as story:
        (said,) = await story.play([call(now)])
        receipt = await story.end()
        story.running.change(classes=Classes(effect=(parse_match("POST *://*/*completions"),)))
        (refused,) = await story.play([call(now)])
        changed = await story.end()
    assert (said.status, dict(receipt.matched)) == (200, {"profile": 1})
    assert refused.status == 424
    assert (changed.faithful, dict(changed.matched)) == (False, {})


async def test_a_client_without_a_profile_is_told_of(store_dir: Path) -> None:
    """In one line, and only where a model call diverged."""
    other = call(CLAUDE.recorded, "other-cli/1.0"), call(CLAUDE.asked, "other-cli/2.0")
    read = Call("GET /items", headers={"User-Agent": "reader/1"})
    changed = Call("GET /items?more=1", headers={"User-Agent": "reader/1"})
    async with recorded(store_dir, [other[0], read]) as story:
        said = await story.play([other[1], other[1], changed])
        receipt = await story.end()
    assert [one.status for one in said] == [424, 424, 424]
    assert receipt.to_json()["unprofiled"] == ["other-cli"]
    told = line(receipt, "no profile for the client other-cli:")
    assert "`playhead learn FIRST SECOND --profile NAME` proposes one" in told


async def test_a_client_without_a_profile_is_played_as_ever(store_dir: Path) -> None:
    """Where nothing of it differs, no line is about a profile."""
    async with recorded(store_dir, [call(CLAUDE.recorded, "other-cli/1.0")]) as story:
        (said,) = await story.play([call(CLAUDE.recorded, "other-cli/1.0")])
        receipt = await story.end()
    assert (said.status, receipt.faithful) == (200, True)
    assert receipt.to_json()["unprofiled"] == []
    assert "profile" not in render_receipt(receipt)


GEMINI = PAIRS["gemini-cli"]


async def test_a_process_id_counts_in_what_another_tool_says(store_dir: Path) -> None:
    """The shell tool alone ends with one that is chance."""
    line = b"one apple\\nProcess Group PGID: %d\\n</untrusted_context>"
    (old, new) = (
        one.body.replace(b'{"output":"one apple\\n"}', b'{"output":"' + line % at + b'"}')
        for one, at in ((GEMINI.recorded, 17), (GEMINI.recorded, 18))
    )
    assert old != new
    what, fields = call(GEMINI.recorded).what, call(GEMINI.recorded).headers
    async with recorded(store_dir, [Call(what, old, headers=fields)]) as story:
        await story.play([Call(what, new, headers=fields)])
        receipt = await story.end()
    assert receipt.faithful is False
    place = receipt.divergences[0]["differences"][0]["place"]
    assert place == "body $.contents[2].parts[1].functionResponse.response.output"


# ---- profiles of one's own ----------------------------------------------------------------------

OWN = """
profile: mybot
version: 1
client: My bot
recognise: {user_agent: [mybot]}
places:
  - match: POST *://*/v1/chat/completions
    json: $.messages[*].content
    regex: '^Please transfer the amount of ([0-9]+) '
    reason: chosen wrongly
    client_version: 1.0
    recordings: [a, b]
  - match: POST *://*/v1/chat/completions
    json: $.metadata.run
    regex: '^([0-9a-f]{8})$'
    reason: the run
    client_version: 1.0
    recordings: [a, b]
"""


def mybot(amount: int, run: str) -> Call:
    said = f"Please transfer the amount of {amount} to bob"
    body = {"model": "m", "messages": [{"role": "user", "content": said}], "metadata": {"run": run}}
    return Call("POST /v1/chat/completions", body, headers={"User-Agent": "mybot/1.0"})


@pytest.mark.parametrize(
    ("asked", "but_for"),
    [
        (mybot(656, "0a0a0a0a"), []),
        (mybot(656, "1b1b1b1b"), []),
        (mybot(94000, "0a0a0a0a"), ["ignored content"]),
    ],
    ids=["the same", "another run", "another amount"],
)
async def test_what_a_profile_of_ones_own_leaves_out_of_a_question_is_told(
    asked: Call, but_for: list[str], store_dir: Path
) -> None:
    """As of a rule of `ignore`: nobody has tried it."""
    own = (ProfileFile("mybot.yaml", OWN),)
    async with recorded(store_dir, [mybot(656, "0a0a0a0a")], profiles=own) as story:
        (said,) = await story.play([asked])
        receipt = await story.end()
    assert said.status == 200
    assert (receipt.faithful, receipt.faithful_but_for) == (not but_for, but_for)


DECIDING = """
profile: mybot
version: 1
client: My bot
recognise: {user_agent: [mybot]}
places:
"""
PLACE = """
  - {match: "*://*/v1/*", %s, regex: '^drawn-([0-9a-f]{16})$', reason: chosen wrongly, client_version: 1.0, recordings: [a, b]}
"""
ONE, OTHER = "drawn-00aa11bb22cc33dd", "drawn-99ff88ee77dd66cc"


@pytest.mark.parametrize(
    ("what", "place", "but_for"),
    [
        ("GET /v1/mail", "header: x-on-behalf-of", True),
        ("GET /v1/mail", "header: x-nobody-knows-this-one", True),
        ("POST /v1/chat/completions", "header: x-act-as", True),
        ("POST /v1/chat/completions", "json: $.model", True),
        ("POST /v1/chat/completions", "json: $.tool_choice", True),
        ("POST /v1/chat/completions", "json: $.previous", True),
        ("POST /v1/chat/completions", "json: $.metadata.customer_id", True),
        ("POST /v1/chat/completions", "json: $.metadata.window", False),
        ("POST /v1/chat/completions", "json: $.request_id", False),
    ],
)
@pytest.mark.parametrize("by", ["profile", "ignore"])
async def test_what_rules_of_ones_own_hide_is_told_where_it_may_decide(
    what: str, place: str, but_for: bool, by: str, store_dir: Path
) -> None:
    """Whatever it is called: only what says that the client makes it anew, and metadata, is not."""

    def asked(value: str) -> Call:
        kind, _, name = place.partition(": ")
        fields, body = {"User-Agent": "mybot/1.0"}, dict[str, Any]()
        if what.startswith("POST"):
            body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
        if kind == "header":
            fields[name] = value
        else:
            *around, last = name.removeprefix("$.").split(".")
            inner: Any = body
            for step in around:
                inner = inner.setdefault(step, {})
            inner[last] = value
        return Call(what, body or b"", headers=fields)

    kind, _, name = place.partition(": ")
    rules: dict[str, dict[str, Any]] = {
        "profile": {"profiles": (ProfileFile("mybot.yaml", DECIDING + PLACE % place),)},
        "ignore": {"ignore": (IgnoreRule(parse_match("*://*/v1/*"), **{kind: (name,)}),)},
    }
    async with recorded(store_dir, [asked(ONE)], **rules[by]) as story:
        (said,) = await story.play([asked(OTHER)])
        receipt = await story.end()
    assert said.status == 200
    assert receipt.faithful_but_for == (["ignored content"] if but_for else [])


# ---- ids that are linked ------------------------------------------------------------------------

IDS = {sign: f"0000{ord(sign):04x}-5a6b-4c7d-8e9f-0a1b2c3d4e5f" for sign in "abxy"}


def opencode(sign: str, question: str, affinity: str = "") -> Call:
    fields = {
        "User-Agent": "opencode/1.18.33",
        "X-Session-Id": f"ses_{sign * 26}",
        "X-Session-Affinity": f"ses_{(affinity or sign) * 26}",
    }
    body = {"model": "m", "messages": [{"role": "user", "content": question}]}
    return Call("POST /v1/messages", body, f"answer {sign}", headers=fields)


def qwen(sign: str, question: str) -> Call:
    told = {"sessionId": IDS[sign], "promptId": f"{IDS[sign]}########0"}
    body = {"model": "m", "messages": [{"content": question}], "metadata": told}
    return Call("POST /v1/chat/completions", body, headers={"User-Agent": "QwenCode/0.24.4"})


ONE_TO_ONE: list[tuple[str, str, list[int]]] = [
    # sessions as recorded, of now, and what is answered
    ("aba", "xyx", [200, 200, 200]),
    ("aba", "aba", [200, 200, 200]),
    # in one another's place
    ("aba", "bab", [200, 424, 200]),
    ("aba", "xyy", [200, 200, 424]),
    ("aba", "xxx", [200, 424, 200]),
    ("aaa", "xxy", [200, 200, 424]),
    ("aaa", "xyx", [200, 424, 200]),
]


@pytest.mark.parametrize("client", [opencode, qwen])
@pytest.mark.parametrize(("then", "now", "statuses"), ONE_TO_ONE)
async def test_a_session_stands_for_one_session(
    then: str,
    now: str,
    statuses: list[int],
    client: Callable[[str, str], Call],
    store_dir: Path,
) -> None:
    """A request under the id of another session than the one before is another request, in header fields and bodies."""
    told = ("one", "two", "three")
    tape, asked = (list(map(client, signs, told)) for signs in (then, now))
    async with recorded(store_dir, tape) as story:
        said = await story.play(asked)
        receipt = await story.end()
    assert [one.status for one in said] == statuses
    assert receipt.faithful is (424 not in statuses)
    for refused in (one for one in said if one.status == 424):
        place = refused.divergence["differences"][0]["place"]
        assert place in (
            "header x-session-affinity",
            "header x-session-id",
            "body $.metadata.sessionId",
        )


async def test_two_sessions_that_ask_the_same_get_their_own_answers(store_dir: Path) -> None:
    """Each goes on with the recorded session that it stands for, in whichever order they come."""
    tape = [
        opencode("a", "one"),
        opencode("b", "two"),
        opencode("a", "go on"),
        opencode("b", "go on"),
    ]
    async with recorded(store_dir, tape) as story:
        said = await story.play(
            [
                opencode("x", "one"),
                opencode("y", "two"),
                opencode("y", "go on"),
                opencode("x", "go on"),
            ]
        )
        receipt = await story.end()
    assert [one.body for one in said] == [b"answer a", b"answer b", b"answer b", b"answer a"]
    assert receipt.faithful


async def test_two_ids_in_one_request_are_compared(store_dir: Path) -> None:
    """Its first request says that the session is another one in one of its fields."""
    async with recorded(store_dir, [opencode("a", "one")]) as story:
        (said,) = await story.play([opencode("x", "one", "y")])
        receipt = await story.end()
    assert said.status == 424
    assert receipt.faithful is False


# ---- reads with a condition --------------------------------------------------------------------

CONDITIONS: list[tuple[str | None, int, str | None, int, str]] = [
    # recorded with, answered, asked with -> status, how it matched
    (None, 200, '"a"', 200, "unconditional"),
    ('"a"', 200, None, 200, "unconditional"),
    ('"a"', 200, '"b"', 200, "unconditional"),
    (None, 404, '"a"', 404, "unconditional"),
    ('"a"', 200, '"a"', 200, "exact"),
    ('"a"', 304, '"a"', 304, "exact"),
    ('"a"', 304, None, 424, ""),
    ('"a"', 304, '"b"', 424, ""),
    (None, 500, '"a"', 424, ""),
]


def conditional(condition: str | None, status: int = 200, agent: str = "Some-CLI/1") -> Call:
    fields = {"User-Agent": agent, **({"If-None-Match": condition} if condition else {})}
    return Call(SETTINGS, answer={"a": 1}, headers=fields, status=status)


@pytest.mark.parametrize(("then", "status", "now", "got", "match"), CONDITIONS)
async def test_an_answer_in_full_answers_whatever_the_condition(
    then: str | None,
    status: int,
    now: str | None,
    got: int,
    match: str,
    store_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a read that the client's profile names; what was not answered in full answers the same condition alone."""
    monkeypatch.setattr(canonical_request, "find_profiles", lambda *_: (SOME,))
    async with recorded(store_dir, [conditional(then, status)]) as story:
        (said,) = await story.play([conditional(now)])
        receipt = await story.end()
    assert said.status == got
    assert dict(receipt.matched) == ({match: 1} if match else {})
    unconditional = "profile some-cli 2: 1 unconditional answer"
    assert line(receipt, "profile ") == (unconditional if match == "unconditional" else "")


async def test_the_same_condition_goes_first(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several answers a read is given the one to its own condition."""
    monkeypatch.setattr(canonical_request, "find_profiles", lambda *_: (SOME,))
    tape = [conditional(None), conditional('"a"', 304)]
    async with recorded(store_dir, tape) as story:
        said = await story.play([conditional('"a"'), conditional(None)])
        receipt = await story.end()
    assert [one.status for one in said] == [304, 200]
    assert dict(receipt.matched) == {"exact": 2}


async def test_a_condition_counts_for_another_client(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that was recorded with a condition and comes without is another one."""
    monkeypatch.setattr(canonical_request, "find_profiles", lambda *_: (SOME,))
    async with recorded(store_dir, [conditional('"a"', agent="curl/8")]) as story:
        (said,) = await story.play([conditional(None, agent="curl/8")])
        await story.end()
    assert said.status == 424


# ---- WebSockets --------------------------------------------------------------------------------


async def talk(running: Running, url: str, *texts: str) -> str:
    """Say things as Codex does; give what was heard last, or how it was closed."""
    fields = {"User-Agent": "codex_exec/0.169.0"}
    async with (
        aiohttp.ClientSession(headers=fields) as session,
        session.ws_connect(url, proxy=running.url_for("r")) as one,
    ):
        for text in texts:
            await one.send_str(text)
            got = await one.receive()
        await one.close(code=1000)
        return str(got.data)


async def replayed(
    store: Path, recorded: str | list[str], played: str | list[str], **config: object
) -> Receipt:
    texts = [[one] if isinstance(one, str) else one for one in (recorded, played)]
    with WebsocketOrigin({}) as origin:
        url = f"{origin.url}/v1/responses"
        async with running_engine(Config(mode=Mode.RECORD, store=store)) as running:
            await talk(running, url, *texts[0])
            await running.end("r")
            origin.stop()
            running.play()
            running.change(**config)
            await talk(running, url, *texts[1])
            await running.end("r@1")
            return build(running.store, running.store.runs.get("r@1"))


async def test_messages_of_a_client_with_a_profile_are_served(store_dir: Path) -> None:
    """A message that needs the profile makes its WebSocket one that matched by it, once."""
    recorded, asked = CODEX.recorded.body.decode(), CODEX.asked.body.decode()
    receipt = await replayed(store_dir, recorded, asked)
    assert (receipt.faithful, dict(+receipt.matched)) == (True, {"profile": 1})
    (row,) = receipt.to_json()["profiles"]
    assert (row["profile"], row["requests"]) == ("codex", 1)
    assert "$.input[*].output[*].text" in row["places"]
    assert "exact" not in line(receipt, "served ")


@pytest.mark.parametrize(("now", "faithful"), [("xx", True), ("aa", True), ("xy", False)])
async def test_a_message_of_another_session_is_refused(
    now: str, faithful: bool, store_dir: Path
) -> None:
    """One recorded id stands for one present id in all messages of the run."""

    def said(sign: str, number: int) -> str:
        told = {"session_id": IDS[sign], "turn_id": IDS["b"]}
        return json.dumps({"type": "response.create", "n": number, "client_metadata": told})

    then, asked = ([said(sign, at) for at, sign in enumerate(signs)] for signs in ("aa", now))
    receipt = await replayed(store_dir, then, asked)
    assert receipt.faithful is faithful
    if not faithful:
        (place,) = [one["place"] for one in receipt.divergences[0]["differences"]]
        assert place == "message[2].$.client_metadata.session_id"


async def test_a_message_with_another_result_is_refused(store_dir: Path) -> None:
    """The duration of a tool does not count, what it has said does."""
    recorded, asked = CODEX.recorded.body.decode(), json.loads(CODEX.asked.body)
    asked["input"][0]["output"][1]["text"] += " "
    receipt = await replayed(store_dir, recorded, json.dumps(asked))
    assert receipt.faithful is False
    (place,) = [one["place"] for one in receipt.divergences[0]["differences"]]
    assert place == "message[0].$.input[0].output[1].text"
    assert receipt.to_json()["unprofiled"] == []


async def test_a_pattern_of_the_configuration_looks_at_messages(store_dir: Path) -> None:
    """`regex` of `ignore`, in JSON and in texts; the receipt says where that may be what a model is asked."""
    rule = IgnoreRule(parse_match("*://*"), regex=("id-([0-9]+)",))
    old, new = (json.dumps({"metadata": {"a": f"id-{number}"}}) for number in (1, 2))
    receipt = await replayed(store_dir, old, new, ignore=(rule,))
    assert receipt.faithful is True
    receipt = await replayed(store_dir / "text", "my id-1", "my id-2", ignore=(rule,))
    assert receipt.faithful_but_for == ["ignored content"]
    receipt = await replayed(store_dir / "other", "my id-1", "an id-1", ignore=(rule,))
    assert receipt.faithful is False
