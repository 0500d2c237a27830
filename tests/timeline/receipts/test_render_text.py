"""What a person sees: hostile text never reaches the terminal raw, and everything is bounded."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.store import RunInfo, RunStatus
from playhead.tape.diff.divergence_types import Divergence, DivergenceKind
from playhead.tape.exchange import Exchange, Headers, Redaction, RunId, Secret, Seq
from playhead.tape.exit_codes import ExitCode
from playhead.tests.support.counts import tries
from playhead.tests.support.exchanges import make_exchange, make_request, make_response
from playhead.tests.support.strategies import exchanges
from playhead.timeline import (
    Receipt,
    exit_code,
    render_exchange,
    render_receipt,
    render_run,
    render_runs,
)
from playhead.timeline.reading.exchange_json import exchange_json
from playhead.timeline.receipts.answers.divergences import Divergences
from playhead.timeline.receipts.answers.left_on_tape import LeftOnTape
from playhead.timeline.receipts.answers.matches import Matches, OptIn
from playhead.timeline.receipts.answers.request_outcomes import Requests
from playhead.timeline.receipts.command.command_end import CommandAccount, CommandEnd
from playhead.timeline.receipts.command.proxy_bypass import PastProxy
from playhead.timeline.receipts.command.surroundings import Surroundings
from playhead.timeline.receipts.effects import Effect, summarise
from playhead.timeline.receipts.gaps import GapRow, Gaps
from playhead.timeline.receipts.interventions.gates import GateRow
from playhead.timeline.receipts.receipt_parts import Parts
from playhead.timeline.receipts.render_text import explain_exit
from playhead.timeline.receipts.safe_terminal_text import plain, plain_lines
from playhead.timeline.receipts.tape import TapeAccount
from playhead.timeline.receipts.warnings_and_hints import Advice

HOSTILE = {
    "clear the screen": "\x1b[2J\x1b[H",
    "colour": "\x1b[31mred",
    "set the title": "\x1b]0;owned\x07",
    "one byte CSI": "\x9b2J",
    "carriage return": "refused\rserved ",
    "newline": "a\nFAITHFUL: replay of x",
    "line separators": "a\u2028b\u2029c\x85d\x0be\x0cf",
    "backspace": "evil\b\b\b\bgood",
    "NUL": "a\0b",
    "right to left": "\u202egnp.exe\u2066\u2069\u200f",
    "invisible": "a\u200b\u2060\ufeff\u00adb",
    "tags": "\U000e0041\U000e007f",
    "lone surrogate": "\ud800\udcff",
    "private use": "\ue000",
    "delete": "a\x7fb",
    "a long line": "x" * 1_000_000,
}  # fmt: skip
hostile = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
any_text = st.text(st.characters(), max_size=60) | st.sampled_from(list(HOSTILE.values()))


def check_safe(shown: str, limit: int = 200_000) -> None:
    """Nothing that moves a cursor, changes a colour or turns the direction of writing."""
    assert [char for char in shown if char != "\n" and not char.isprintable()] == []
    assert max(map(len, shown.splitlines()), default=0) <= 2100
    assert len(shown) <= limit
    shown.encode("utf-8")


@hostile
def test_plain_is_one_safe_line(text: str) -> None:
    """Escapes are shown as what they are."""
    shown = plain(text)
    check_safe(shown)
    assert "\n" not in shown
    assert len(shown) <= 160


@given(any_text, st.integers(1, 200))
def test_plain_keeps_its_bound(text: str, limit: int) -> None:
    """Also where escaping makes it longer; what is printable and short stays as it is."""
    shown = plain(text, limit)
    check_safe(shown)
    assert len(shown) <= limit
    if text.isprintable() and len(text) <= limit:
        assert shown == text
    assert shown.endswith("…") or len(text) <= 2 * limit


def test_lines_stay_lines() -> None:
    """Of a body, and safe each."""
    assert plain_lines("a\r\nb\n\x1b[0mc") == "a\nb\n\\x1b[0mc"


# ---- each view, with something hostile in every place --------------------------------------------


def hostile_exchange(text: str) -> Exchange:
    data = text.encode("utf-8", "surrogatepass")[:100_000]
    header: Headers = ((data, data), (b"content-type", data), (b"content-encoding", data))
    request = replace(
        make_request(),
        method=text, host=text, target=text, http_version=text, headers=header, body=data,
    )  # fmt: skip
    response = make_response(data, reason=data, http_version=text, headers=header, trailers=header)
    return make_exchange(
        1,
        reason=text,
        request=request,
        response=response,
        redactions=(Redaction(text, text),),
        warnings=(text,),
    )


@hostile
def test_an_exchange_is_shown_safely(text: str) -> None:
    """Method, URL, headers, bodies, reasons, warnings."""
    exchange = hostile_exchange(text)
    check_safe(render_exchange(exchange))
    assert len(summarise(exchange.request)) <= 120


@tries(15)
@given(exchanges())
def test_any_exchange_is_shown_safely(exchange: Exchange) -> None:
    """Whatever was recorded; as JSON in ASCII too."""
    check_safe(render_exchange(exchange))
    document = json.dumps(exchange_json(exchange), ensure_ascii=True)
    assert document.isascii()
    assert document.isprintable()


@hostile
def test_runs_are_listed_safely(text: str) -> None:
    """Names and agents come from clients."""
    info = RunInfo(
        1, RunId(text), text, 1, RunStatus.SEALED, parent=RunId(text), agent=text, end=text
    )
    shown = render_runs([info, info])
    check_safe(shown)
    assert len(shown.splitlines()) == 3
    row = {"seq": 1, "class": text, "verdict": text, "method": text, "url": text, "outcome": text}
    listed = render_run(info, [row])
    check_safe(listed)
    assert len(listed.splitlines()) == 3


def hostile_receipt(text: str, many: int = 1) -> Receipt:
    row: dict[str, Any] = {"seq": 1, "method": text, "url": text, "reason": text}
    requests = Requests(
        1,
        Counter(refused=many, unused=many, served=1),
        live=[row | {"request_class": text}] * many,
        refused=[row] * many,
        faults=[{"seq": 1, "kind": text, "phase": text, "text": text}] * many,
        unfinished=[1] * many,
    )
    matches = Matches(
        Counter({text: 1}),
        model_drift=[OptIn(text, 1, [1] * 100)] * many,
        drifted=[{"kind": text, "seq": 1, "tape_seq": 1, "what": text}] * many,
    )
    past_proxy = PastProxy(
        egress=[{"target": text, "by": text, "reason": text}] * many,
        foreign=[{"protocol": text, "address": text, "port": 1, "process": text}] * many,
    )
    parts = Parts(
        requests,
        matches,
        left_on_tape=LeftOnTape([row] * many),
        effects=[Effect(1, text, text, text, text, text, text)] * many,
        past_proxy=past_proxy,
        advice=Advice([text] * many),
    )
    return Receipt(text, text, "playback", "sealed", text, parts)


def divergence(text: str) -> dict[str, Any]:
    difference = {"place": text, "recorded": text, "asked": [text, {text: None}]}
    told = {"kind": text, "seq": 1, "method": text, "url": text, "text": text, "nearest_seq": None}
    return told | {"differences": (difference,) * 10}


@hostile
def test_a_receipt_is_shown_safely(text: str) -> None:
    """With and without divergences, playback and recording."""
    receipt = hostile_receipt(text)
    lines = render_receipt(receipt)
    check_safe(lines)
    assert sum(line.startswith("FAITHFUL") for line in lines.splitlines()) == 0
    receipt.parts.divergences = Divergences([divergence(text)] * 30)
    check_safe(render_receipt(receipt))
    check_safe(render_receipt(replace(receipt, mode="record")))


@pytest.mark.parametrize(
    ("standing", "rules", "head"),
    [
        ("sealed", (), "FAITHFUL: replay of t (sealed)"),
        ("recovered", (), "FAITHFUL TO A RECOVERED TAPE: replay of t (recovered)"),
        ("imported", (), "FAITHFUL TO AN IMPORTED TAPE: replay of t (imported)"),
        ("rewritten", ("a",), "FAITHFUL TO A REWRITTEN TAPE: replay of t (rewritten by a)"),
        ("imported", ("a", "b"), "FAITHFUL TO AN IMPORTED, REWRITTEN TAPE: replay of t (imported, rewritten by a, b)"),
    ],
)  # fmt: skip
def test_only_a_sealed_tape_is_played_plainly_faithful(
    standing: str, rules: tuple[str, ...], head: str
) -> None:
    """The first line names what a tape is; the exit code is the command's own."""
    made = Receipt("t@1", "t", "playback", "sealed", parts=Parts(Requests(1)))
    made.counts["served"] = made.matched["exact"] = 1
    made.parts.tape = TapeAccount(standing=standing, rewritten=dict.fromkeys(rules))
    assert render_receipt(made).splitlines()[1] == head
    assert (made.faithful, exit_code(made)) == (standing == "sealed", 0)
    assert made.to_json()["tape"]["standing"] == standing


def test_a_receipt_is_bounded() -> None:
    """A dozen rows of each list, and how many more there are."""
    receipt = hostile_receipt("\x1b[31m" * 1000, many=1000)
    receipt.parts.divergences = Divergences([divergence("\x1b[31m" * 1000)] * 1000)
    shown = render_receipt(receipt)
    check_safe(shown, 50_000)
    assert len(shown.splitlines()) < 250
    assert "… and 988 more" in shown


# ---- bodies ------------------------------------------------------------------------------------


def shown_body(body: bytes, content_type: bytes = b"text/plain") -> str:
    response = make_response(body, headers=((b"content-type", content_type),))
    return render_exchange(make_exchange(response=response))


def test_json_is_indented_and_text_is_text() -> None:
    """A person reads it."""
    assert '\n{\n  "a": 1\n}' in shown_body(b'{"a":1}', b"application/json")
    assert "\ngrüße" in shown_body("grüße".encode())
    assert "{broken" in shown_body(b"{broken", b"application/json")


def test_bytes_are_shown_as_hex() -> None:
    """The beginning of it, and how many."""
    assert "<300 bytes: ffff" in shown_body(b"\xff" * 300)


@pytest.mark.parametrize("cut", range(4))
def test_a_limit_inside_a_character_does_not_make_text_binary(cut: int) -> None:
    """A long answer in any language is text to its limit."""
    shown = shown_body(("x" * cut + "𝄞" * 10_000).encode())
    assert "𝄞" * 100 in shown
    assert "bytes more" in shown
    assert "bytes:" not in shown


@pytest.mark.parametrize(
    "body",
    [
        b"x" * 30_000_000,
        b"\n" * 30_000_000,
        b"\0" * 30_000_000,
        b"[" * 9_000 + b"]" * 9_000,
        b"[" * 400 + b"1," * 9_000 + b"1" + b"]" * 400,
        b"9" * 19_000,
        b'"' + b"\\ud800" * 3_000 + b'"',
    ],
    ids=["long line", "lines", "zeros", "deep", "deep and wide", "a number", "surrogates"],
)  # fmt: skip
def test_a_body_is_bounded(body: bytes) -> None:
    """However large, deep or odd."""
    check_safe(shown_body(body, b"application/json"))


def test_headers_are_bounded() -> None:
    """By their number and their length."""
    headers = ((b"x-" + b"n" * 5000, b"v" * 50_000),) * 5000
    shown = render_exchange(make_exchange(response=make_response(headers=headers)))
    check_safe(shown)
    assert "… and 4800 more" in shown


def test_placeholders_are_marked() -> None:
    """In the URL and the bodies, where they are; those of fields are listed."""
    secrets = (Secret("body", 8, 4, "secret"), Secret("target", 4, 2, "key"))
    request = replace(
        make_request("GET https://api.test/?a=b&c=d", b'{"key":"drrd"}'), secrets=secrets
    )
    response = replace(make_response(b"key: drrd."), secrets=(Secret("body", 5, 4, "secret"),))
    exchange = replace(make_exchange(response=response), request=request)
    exchange = replace(exchange, redactions=(Redaction("request.header.cookie", "cookie"),))
    shown = render_exchange(exchange)
    assert "/?a=⟦b&⟧c=d" in shown
    assert '{"key":"⟦drrd⟧"}' in shown
    assert "key: ⟦drrd⟧." in shown
    assert "replaced by placeholders (⟦ ⟧): request.header.cookie" in shown


def test_folders_that_were_empty_to_a_command_are_named() -> None:
    """What it wrote there is gone."""
    seen = {"files": {"empty": ["/home/u", "/tmp"]}}
    parts = Parts(surroundings=Surroundings(sandbox=seen))
    receipt = Receipt("r@1", "r", "playback", "sealed", parts=parts)
    told = "empty to the command, and its files there are gone: /home/u, /tmp"
    assert told in render_receipt(receipt)


def test_an_answer_of_a_persons_own_is_no_divergence() -> None:
    """A replay with one ends with 121, and says that it is for this alone."""
    counts = Counter({"served": 1, "hypothetical": 1})
    receipt = Receipt("r@1", "r", "playback", "sealed", parts=Parts(Requests(2, counts)))
    assert exit_code(receipt) == 121
    assert "you answered for the tape at a breakpoint" in render_receipt(receipt)


def test_the_cause_stands_above_the_hint_at_a_profile() -> None:
    """It is for the next time, and says nothing of why this run diverged."""
    receipt = hostile_receipt("x")
    receipt.parts.matches.profiles.unprofiled["other-cli"] = None
    receipt.parts.divergences = Divergences([divergence("x")], root=divergence("x"))
    shown = render_receipt(receipt)
    assert 0 < shown.index("diverged:") < shown.index("no profile for the client other-cli")


@pytest.mark.parametrize(
    ("followed", "lists"),
    [
        ({"changed": 2, "unused": 2}, " (playhead receipt r@1 --all lists them)"),
        ({"unused": 2}, ""),
    ],
)
def test_what_lists_the_others_is_named_if_it_shows_more(
    followed: dict[str, int], lists: str
) -> None:
    """What was unused is listed anyway."""
    found = Divergences([divergence("x")], root=divergence("x"), followed=Counter(followed))
    receipt = Receipt("r@1", "r", "playback", "sealed", parts=Parts(divergences=found))
    kinds = ", ".join(f"{count} {kind}" for kind, count in followed.items())
    line = f"  followed by {sum(followed.values())} more: {kinds}{lists}"
    assert line in render_receipt(receipt).splitlines()


@pytest.mark.parametrize(("code", "told"), [(130, True), (1, False), (0, False)])
def test_a_recording_that_was_interrupted_says_so(code: int, told: bool) -> None:
    """It is not whole; one without a request says it in another line."""
    parts = Parts(Requests(1), command=CommandAccount(CommandEnd(code)))
    shown = render_receipt(Receipt("r", None, "record", "sealed", parts=parts))
    assert ("the command was interrupted (130)" in shown) is told


@pytest.mark.parametrize(
    ("code", "attempts", "why"),
    [
        (0, [], "the agent made no request through the proxy"),
        (2, [], "the command failed by itself, with 2, and made no request through the proxy"),
        (127, [], "the command failed by itself, with 127 (no such command), and made no request"),
        (1, [{"count": 1}], "the command came to the proxy, and asked for nothing there"),
        (1, [{"count": 0}], "the command failed by itself, with 1, and made no request"),
    ],
)
def test_why_nothing_was_tested(code: int, attempts: list[dict[str, Any]], why: str) -> None:
    """A client that came to the proxy and left is not told that it made no request."""
    parts = Parts(command=CommandAccount(CommandEnd(code)), past_proxy=PastProxy(attempts=attempts))
    receipt = Receipt("r@1", "r", "playback", "sealed", parts=parts)
    assert explain_exit(receipt, ExitCode.UNTESTABLE).startswith(f"nothing was tested: {why}")


@pytest.mark.parametrize(
    ("code", "words", "advised"),
    [
        (1, "python agent.py", "proxy. Its own output says why"),
        (
            1,
            "/venv/bin/python agent.py",
            "It is not the recorded one, python agent.py. Its own output",
        ),
        (2, "python agnet.py", "It is not the recorded one, python agent.py. Its own output"),
        (137, "python agent.py", "made no request through the proxy"),
    ],
)
def test_a_command_that_failed_at_once_is_given_a_next_step(
    code: int, words: str, advised: str
) -> None:
    """A program, a package or a variable is missing, as its own output says; who killed it knows why."""
    ended = CommandEnd(code, tuple(words.split()))
    recorded = CommandEnd(0, ("python", "agent.py"))
    parts = Parts(command=CommandAccount(ended, recorded=recorded))
    receipt = Receipt("r@1", "r", "playback", "sealed", parts=parts)
    told = explain_exit(receipt, ExitCode.UNTESTABLE)
    assert advised in told
    assert ("mend that, then replay again" in told) is (code < 128)


@pytest.mark.parametrize(
    ("refused", "url", "ports"),
    [
        ("tcp://127.0.0.1:9771", "http://127.0.0.1:9771/items/7", "9771"),
        ("tcp://127.0.0.1:80", "http://localhost/items/7", "80"),
        ("tcp://[::1]:9771", "http://[::1]:9771/items/7", "9771"),
        ("tcp://127.0.0.1:5432", "http://127.0.0.1:9771/items/7", None),
        ("tcp://127.0.0.1:9771", "http://shop.test:9771/items/7", None),
        ("udp://127.0.0.1:9771", "http://127.0.0.1:9771/items/7", None),
    ],
)
def test_a_port_of_the_tape_that_the_sandbox_refused_is_named(
    refused: str, url: str, ports: str | None
) -> None:
    """It was led to the proxy while it was recorded, and this configuration has it not; the command did not fail by itself."""
    row = {"target": refused, "count": 1, "process": "python"}
    parts = Parts(
        command=CommandAccount(CommandEnd(1)),
        surroundings=Surroundings(True, {"refused": [row]}),
        left_on_tape=LeftOnTape([{"seq": 1, "method": "GET", "url": url}]),
    )
    receipt = Receipt("r@1", "r", "playback", "sealed", parts=parts)
    told = explain_exit(receipt, ExitCode.UNTESTABLE)
    assert (f"replay with `sandbox: {{ports: [{ports}]}}`" in told) is (ports is not None)
    assert ("failed by itself" in told) is (ports is None)


def test_the_end_of_a_command_is_no_request() -> None:
    """It has the number of a request that there is none of: the first one of the tape is another thing."""
    differs = Divergence(DivergenceKind.CHANGED, Seq(1), "command", "python", None, (), "it ended")
    found = Divergences([differs.to_json()], root=differs.to_json())
    receipt = Receipt("r@1", "r", "playback", "sealed", parts=Parts(divergences=found))
    assert "  at the end  changed: command python\n" in render_receipt(receipt)


def test_a_recording_with_a_gap_says_what_to_do() -> None:
    """A replay of it cannot be faithful."""
    parts = Parts(gaps=Gaps([GapRow(1, 2, "its disk is full", 0, 0, 0)]))
    shown = render_receipt(Receipt("r", None, "record", "sealed", parts=parts))
    assert "the recording is not whole: free space where the store is, then record again" in shown


def test_a_client_that_left_a_gate_waited_too_short() -> None:
    """What to do is in its line."""
    row = GateRow(2, "POST", "https://a.test/", "d", "held", ruling="left", waited_s=5.0)
    assert "its client waited 5.0 s, too short for a ruling" in str(row)
    assert "raise the agent's timeout" in str(row)
    assert "after 5.0 s" in str(replace(row, ruling="denied"))


@pytest.mark.parametrize("files", [None, {"empty": []}])
def test_folders_that_were_not_searched_are_told_with_what_searches_them(
    files: dict[str, Any] | None,
) -> None:
    """In one line, the same from run to run; what hides them is not named where it is in use."""
    seen = {"files": files, "pipes_unsearched": ["/", "/home/u/a", "/home/u/b"]}
    (line,) = Surroundings(sandbox=seen).lines()
    assert line.startswith("not searched for named pipes: / and further folders; by one there")
    assert "`sandbox.pipe_search`, 0.2s by default" in line
    assert ("--sandbox-files" in line) is (files is None)
