"""Two tenants are given a credential each: whoever sends the other one's, or an invented one, is refused, wherever it is sent.

Each was found by a tester who had the documents alone.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest

from playhead.config import Config, Mode, Playback
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.story import Call, Said, recorded
from playhead.tests.support.websocket import WebsocketOrigin
from playhead.timeline import Receipt, build

TOKENS = "kX9vQ2mL7pR4tZ8wB5/nC+dF6=", "wT3nH6bJ1cF5yD0sQ7/xZ+vB8="
INVENTED = "Zq8Lw3Rt6Vy1Xe5Mn2/p9+Jd4="
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


SOURCES: dict[str, Callable[[str], Call]] = {
    "member": lambda token: Call("", answer={"access_token": token}),
    "cookie": lambda token: Call("", answer_headers={"Set-Cookie": f"sid={token}; Path=/"}),
    "redirect": lambda token: Call("", status=201, answer={}, answer_headers={"Location": f"https://app.test/cb?code={quote(token, safe='')}&state=1"}),
    "base64": lambda token: Call("", answer={"blob": _code({"access_token": token})}),
    "data URL": lambda token: Call("", answer={"url": "data:application/json;base64," + _code({"t": 1, "access_token": token})}),
    "base64 alone": lambda token: Call("", answer=_code({"id": "ab", "access_token": token}, url=True)),
    "base64 of what is no secret": lambda token: Call("", answer={"blob": _code({"id": token})}),
    "base64 in a field": lambda token: Call("", answer_headers={"X-Config": _code({"access_token": token})}),
    "page": lambda token: Call("", answer=f"<input name=csrf value='{token.replace('+', '&#x2B;')}'>"),
}  # fmt: skip
Sent = tuple[Mapping[str, str], object]
USES: dict[str, Callable[[str], Sent]] = {
    "bearer": lambda token: ({"Authorization": f"Bearer {token}"}, {"a": 1}),
    "basic": lambda token: ({"Authorization": _basic("x-access-token", token)}, {"a": 1}),
    "basic user": lambda token: ({"Authorization": _basic(token, "")}, {"a": 1}),
    "cookie": lambda token: ({"Cookie": f"sid={token}"}, {"a": 1}),
    "URL in a field": lambda token: ({"X-Callback": f"https://cb.test/x?access_token={quote(token, safe='')}"}, {"a": 1}),
    "user of a URL": lambda token: ({"X-Remote": f"https://git:{quote(token, safe='')}@git.test/x"}, {"a": 1}),
    "form": lambda token: (FORM, f"grant_type=authorization_code&code={quote(token, safe='')}".encode()),
    "member": lambda token: ({}, {"api_key": token}),
    "own member": lambda token: ({}, {"note": token}),
    "prompt": lambda token: ({}, {"messages": [{"role": "user", "content": f"use {token} for it"}]}),
    "own field": lambda token: ({"X-Own": f"x; cursor={token}"}, {"a": token}),
}  # fmt: skip


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _code(told: Mapping[str, object], *, url: bool = False) -> str:
    """Write JSON in base64, in that of URLs without padding."""
    coded = base64.b64encode(json.dumps(told).encode()).decode()
    return coded.rstrip("=").replace("+", "-").replace("/", "_") if url else coded


def _decode(coded: str) -> str:
    plain = coded.rstrip("=").replace("-", "+").replace("_", "/")
    told: dict[str, object] = json.loads(base64.b64decode(plain + "=" * (-len(plain) % 4)))
    return str(told.get("access_token") or told["id"])


def _read(source: str, said: Said) -> str:
    """Read the credential out of an answer, as an agent does."""
    import html
    from urllib.parse import unquote

    match source:
        case "base64" | "base64 of what is no secret":
            return _decode(json.loads(said.body)["blob"])
        case "data URL":
            return _decode(json.loads(said.body)["url"].partition(",")[2])
        case "base64 alone":
            return _decode(said.body.decode())
        case "base64 in a field":
            return _decode(said.headers["x-config"])
        case "cookie":
            return said.headers["set-cookie"].partition("=")[2].partition(";")[0]
        case "redirect":
            return unquote(said.headers["location"].partition("code=")[2].partition("&")[0])
        case "page":
            return html.unescape(said.body.decode()).partition("value='")[2].partition("'")[0]
    return str(json.loads(said.body)["access_token"])


PAIRS = [
    *(("member", use) for use in USES if use not in ("own member", "prompt", "own field")),
    ("cookie", "cookie"),
    ("cookie", "bearer"),
    ("redirect", "form"),
    ("page", "member"),
    ("page", "bearer"),
    *(("base64", use) for use in ("bearer", "basic", "prompt", "own field", "own member")),
    ("data URL", "bearer"),
    ("data URL", "own field"),
    ("base64 alone", "bearer"),
    ("base64 alone", "own member"),
    ("base64 of what is no secret", "bearer"),
    ("base64 of what is no secret", "member"),
    ("base64 in a field", "bearer"),
    ("base64 in a field", "prompt"),
]


@pytest.mark.parametrize(("source", "use"), PAIRS)
async def test_the_credential_of_another_tenant_is_refused(
    source: str, use: str, store_dir: Path
) -> None:
    """Though neither was used before; its own one is served, and `exact`."""
    logins = [
        Call(
            f"POST /login/{number}",
            answer=made.answer,
            answer_headers=made.answer_headers,
            status=made.status,
        )
        for number, token in enumerate(TOKENS)
        for made in [SOURCES[source](token)]
    ]

    def close(token: str) -> Call:
        headers, body = USES[use](token)
        return Call("POST /account/close", body, headers=headers)

    async with recorded(store_dir, [*logins, close(TOKENS[0])]) as story:
        for which in range(3):
            given = [_read(source, said) for said in await story.play(logins)]
            (said,) = await story.play([close([*given, INVENTED][which])])
            receipt = await story.end()
            is_recorded = said.status == 200 and "x-playhead" not in said.headers  # and no stub
            assert (is_recorded, receipt.faithful) == (which == 0, which == 0), (
                which,
                receipt.divergences,
            )


# ---- WebSockets --------------------------------------------------------------------------------


async def _talk(running: Running, url: str, key: Callable[[list[str]], str]) -> None:
    """Ask for two tokens, and send one."""
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, proxy=running.url_for("r")) as one,
    ):
        given = list[str]()
        for tenant in TOKENS:
            await one.send_str(json.dumps({"access_token": tenant, "op": "echo"}))
            got = await one.receive()
            if got.type is not aiohttp.WSMsgType.TEXT:
                return
            given.append(json.loads(got.data)["access_token"])
        await one.send_str(json.dumps({"op": "close", "api_key": key(given)}))
        await one.receive()
        await one.close(code=1000)


async def _replay(tmp_path: Path, key: Callable[[list[str]], str]) -> Receipt:
    store = tmp_path / "store"
    with WebsocketOrigin({}) as origin:
        url = f"{origin.url}/rates"
        async with running_engine(Config(mode=Mode.RECORD, store=store)) as running:
            await _talk(running, url, lambda given: given[0])
            await running.end("r")
        origin.stop()
        async with running_engine(Config(mode=Mode.PLAYBACK, store=store)) as running:
            await _talk(running, url, key)
            await running.end("r@1")
            return build(running.store, running.store.runs.get("r@1"))


async def test_a_message_with_another_credential_is_refused(tmp_path: Path) -> None:
    """In a place of credentials: the key of a tenant stands for itself from its first message on."""
    good = await _replay(tmp_path / "good", lambda given: given[0])
    assert (good.faithful, dict(good.matched)) == (True, {"exact": 1}), good.divergences
    for number, key in enumerate((lambda given: given[1], lambda given: INVENTED)):
        told = await _replay(tmp_path / str(number), key)
        assert [one["place"] for one in told.divergences[0]["differences"]] == [
            "message[4].$.api_key"
        ]


_MCP = {"jsonrpc": "2.0", "id": 1}
_OPEN = {**_MCP, "method": "initialize", "params": {}}


def _call(session: str, method: str, query: str = "") -> Call:
    body = {**_MCP, "method": method, "params": {"arguments": {"q": query}}}
    return Call("POST /mcp", body, headers={"mcp-session-id": session})


async def test_one_session_of_mcp_is_not_another_one_once_both_were_used(store_dir: Path) -> None:
    """Two sessions that were opened alike: what one has done so far tells it from the other one. Swapped as a whole they are the same."""
    opened = [Call("POST /mcp", _OPEN, answer_headers={"mcp-session-id": one}) for one in "ab"]
    ways = {
        "ab" "abb": True,
        "ba" "bab": False,
        "ab" "aba": False,
        "ba" "baa": True,
    }  # fmt: skip
    tape = [*opened, *_of("ababb")]
    for way, is_same in ways.items():
        async with recorded(store_dir / way, tape) as story:
            said = await story.play([*opened, *_of(way)])
            receipt = await story.end()
            told = [one.status for one in said]
            assert told == [200] * 6 + [200 if is_same else 424], way
            assert receipt.faithful is is_same, way


async def test_a_session_that_is_slow_to_begin_is_the_one_that_is_left(store_dir: Path) -> None:
    """The other one has said by then which it is, and has had the answers to what both say first."""
    opened = [Call("POST /mcp", _OPEN, answer_headers={"mcp-session-id": one}) for one in "ab"]
    free = Playback(order="free")
    async with recorded(store_dir, [*opened, *_of("ababb")], playback=free) as story:
        for quick, slow, rest in (("a", "b", "bb"), ("b", "a", "aa"), ("b", "a", "ab")):
            first, use, second = (
                _call(quick, "tools/list"),
                _call(quick, "tools/call", "use prod"),
                _call(slow, "tools/list"),
            )
            last = _of(f"xxx{rest}")[3:]
            said = await story.play([*opened, first, use, second, *last])
            receipt = await story.end()
            is_same = rest == slow * 2
            assert [one.status for one in said][-1] == (200 if is_same else 424)
            assert receipt.faithful is is_same, (quick, rest, receipt.divergences)


def _of(sessions: str) -> list[Call]:
    """Give the calls of two agents: both list the tools, each uses another database, and one of them drops a table."""
    does = [("tools/list", ""), ("tools/list", ""), *(("tools/call", f"use {one}") for one in ("prod", "staging"))]  # fmt: skip
    does.append(("tools/call", "drop table users"))
    return [_call(session, *what) for session, what in zip(sessions, does, strict=True)]


async def test_sessions_of_two_tenants_are_no_other_ones_from_the_first_call_on(
    store_dir: Path,
) -> None:
    """Whoever opens a session with another credential is somebody else, though all else is the same."""
    keys = [{"authorization": f"Bearer {token}"} for token in TOKENS]
    opened = [Call("POST /mcp", _OPEN, headers=key, answer_headers={"mcp-session-id": one}) for key, one in zip(keys, "ab", strict=True)]  # fmt: skip

    def use(session: str) -> Call:
        call = _call(session, "tools/call", "drop")
        return replace(call, headers={**call.headers, **keys[1]})

    async with recorded(store_dir, [*opened, use("b")]) as story:
        for session in "ba":
            said = await story.play([*opened, use(session)])
            assert said[-1].status == (200 if session == "b" else 424)
            assert (await story.end()).faithful is (session == "b")


_STDIO = {
    # the servers of one name begin in the other order: the same, whatever was asked before
    "ab" "ababb": True,
    "ba" "babaa": True,
    # only their first calls, in which they are alike, have changed places
    "ba" "ababb": True,
    "ab" "baabb": True,
    # a call moves to the other one
    "ab" "ababa": False,
    "ba" "babab": False,
    "ab" "abaab": False,
}  # fmt: skip


@pytest.mark.parametrize("way", _STDIO)
@pytest.mark.parametrize("commands", ["same", "other", "elsewhere"])
async def test_one_server_on_a_pipe_is_not_another_one(
    store_dir: Path, way: str, commands: str
) -> None:
    """Those of one name that begin alike are told apart by what was asked of one alone, those of two commands by these."""
    async with recorded(store_dir, _pipes("abababb", commands)) as story:
        said = await story.play(_pipes(way, commands, now="elsewhere"))
        receipt = await story.end()
    # The tape's own commands stand for themselves: what was asked of one is asked of that one.
    is_same = way.endswith("abb") if commands == "other" else _STDIO[way]
    assert receipt.faithful is is_same, [one.status for one in said]
    if way == "abababb" and commands != "elsewhere":
        assert dict(receipt.matched) == {"exact": 7}


def _pipes(servers: str, commands: str, now: str = "") -> list[Call]:
    """Give the calls of two servers: both begin and list their tools, each uses another database, and one drops a table."""
    does = ["initialize"] * 2 + ["tools/list"] * 2 + ["use prod", "use staging", "drop"]
    calls = []
    for server, what in zip(servers, does, strict=True):
        number = "ab".index(server) + 1
        command = f"serve {server}" if commands != "same" else "serve"
        if commands == now:
            command = f"/home/me/{command}"
        fields = {
            "playhead-stdio-command": command,
            "playhead-stdio-instance": f"s/{number}",
        }
        calls.append(Call("POST /s", {**_MCP, "method": what}, headers=fields))
    return calls
