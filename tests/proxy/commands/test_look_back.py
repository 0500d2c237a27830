"""`playhead show`, `state`, `context`, `rewind`, `blame` and `cache`: what a person reads in 80 columns, and what is said of bad input."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from playhead.store import Store, StoreError
from playhead.tape.canonical.canonical_request import canonical, compile_rules, fingerprint
from playhead.tape.exchange import RequestClass
from playhead.tests.support.agent_tapes import TAPES, Tape, anthropic, anthropic_stream, user
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import make_exchange, write_run
from playhead.tests.support.looking_back import ask, output, write_store
from playhead.timeline.show.fit import columns

HOSTILE = "\x1b[31mred\x1b[0m \u202ebackwards\u202c \x07\x00 " + "x" * 100_000


def hostile() -> Tape:
    """A tape whose every text would move a cursor or turn a line round."""
    tape = Tape("hostile")
    call = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": HOSTILE[:60],
        "input": {"command": HOSTILE},
    }
    asked = anthropic([user(HOSTILE)], system=HOSTILE, model=HOSTILE[:80])
    tape.model(asked, anthropic_stream({"type": "text", "text": HOSTILE}, call, stop="tool_use"))
    tape.get("https://shop.test/%1b%5b", HOSTILE.encode())
    return tape


def odd() -> Tape:
    """A model call whose body no dialect reads, and one at a path that none claims."""
    tape = Tape("odd")
    url = "https://api.anthropic.com/v1/messages"
    body = make_request(url, b"\xff\xfe no JSON", {"anthropic-version": "2023-06-01"})
    tape.model(body, make_response(b"\x00\x01\x02\xff" * 100))
    tape.model(make_request("https://models.test/ask", {"q": 1}), make_response({"a": 2}))
    return tape


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with all tapes, each under its name with dashes."""
    folder = tmp_path_factory.mktemp("look back") / "store"

    async def write(opened: Store) -> None:
        for make in (*TAPES, hostile, odd):
            tape = make()
            await write_run(opened, tape.name.replace(" ", "-"), tape.exchanges)
        await write_run(opened, "nothing", [])

    return write_store(folder, write)


def check_safe(text: str) -> None:
    """Nothing in it moves a cursor, and no line turns round."""
    assert all(char.isprintable() or char in "\n\t" for char in text)


def test_a_page_of_a_run(store: Path) -> None:
    """Steps decoded, a line each: what was called with what, what it caused, what was said, by lane."""
    page = output(store, "show", "claude-code-with-a-sub-agent")
    assert page == (
        "run claude-code-with-a-sub-agent: record, sealed\n"
        "    SEQ L  STEP                                                    TOKENS   TIME\n"
        "      1 ·  (quota) I                                              1000+42   1.0s\n"
        "      2 ·  (title) Refund an order                                1000+42   1.0s\n"
        "      3 1  Bash curl -s https://shop.test/orders/7                1000+42   1.0s\n"
        "      4 1    GET shop.test/orders/7 200                                     1.0s\n"
        "      5 1  Task Find the refund policy in docs/.                  1000+42   1.0s\n"
        "      6 2  Read docs/refunds.md                                   1000+42   1.0s\n"
        "      7 2  = 30 days.                                             1000+42   1.0s\n"
        "      8 1  Bash curl -X POST https://shop.test/refunds -d order=7 1000+42   1.0s\n"
        "      9 1  * POST shop.test/refunds 200                                     1.0s\n"
        "     10 1  = Refunded.                                            1000+42   1.0s\n"
        "\n"
        "lane 1: 4 calls, 4000+168 tokens, claude-opus-4-5; You are Claude Code, a codin…\n"
        "  client: claude-cli/2.1.331 (external, cli)\n"
        "lane 2, of lane 1: 2 calls, 2000+84 tokens, claude-opus-4-5; Task: look\n"
        "8 model calls, 4 tool calls, 2 other requests\n"
        "effects (*): 9\n"
    )


@pytest.mark.parametrize("tape", [make().name for make in (*TAPES, hostile, odd)])
def test_every_page_keeps_80_columns(store: Path, tape: str) -> None:
    """Whatever the run, with a line for each step or without; its graphs and its JSON are well formed."""
    name = tape.replace(" ", "-")
    for words in ((), ("--all",), ("--grep", ".")):
        page = output(store, "show", name, *words)
        check_safe(page)
        assert max(map(columns, page.splitlines())) <= 80
    told = json.loads(output(store, "show", name, "--json"))
    assert {step["seq"] for step in told["steps"]} == set(range(1, told["steps"][-1]["seq"] + 1))
    assert output(store, "show", name, "--graph", "mermaid").startswith("flowchart TD\n")
    dot = output(store, "show", name, "--graph", "dot")
    assert dot.count("{") == dot.count("}")
    check_safe(dot)


@pytest.mark.parametrize("tape", [make().name for make in (*TAPES, hostile, odd)])
def test_every_cause_keeps_80_columns(store: Path, tape: str) -> None:
    """Of every URL, and of what the first message says; and what became of the cache, whatever the run."""
    name = tape.replace(" ", "-")
    with Store.open(store, readonly=True) as opened:
        seqs = opened.exchanges.seqs(opened.runs.get(name))
    pages = [output(store, "blame", name, seq, "url") for seq in seqs]
    pages += [ask(store, "blame", name, seqs[-1], "$.messages[0].content").stdout]
    pages += [ask(store, "blame", name, seqs[0], "$.system[0].text").stdout]
    pages.append(output(store, "cache", name))
    for page in pages:
        check_safe(page)
        assert max(map(columns, page.splitlines()), default=0) <= 80
    assert isinstance(json.loads(output(store, "cache", name, "--json")), list)
    told = json.loads(output(store, "blame", name, seqs[-1], "url", "--json"))
    assert told["seq"] == seqs[-1]


def test_a_value_is_traced_to_the_answer_that_had_it(store: Path) -> None:
    """Its origin with the evidence, and the way from there to the request."""
    name = "claude-code-with-a-sub-agent"
    assert output(
        store, "blame", name, 8, "$.messages[2].content[0].content", "--value", "40.00"
    ) == (
        "8 $.messages[2].content[0].content: 40.00\n"
        "  POST https://api.anthropic.com/v1/messages?beta=true\n"
        "first in 4 answer $.total (inferred: the same, but others may have it by chance)\n"
        "  GET https://shop.test/orders/7\n"
        "    40.00\n"
        "then in\n"
        "  5 request $.messages[2].content[0].content.total (tool result) POST https://a…\n"
        "  playhead show claude-code-with-a-sub-agent 4\n"
    )


@pytest.mark.parametrize("tape", [make().name for make in (*TAPES, hostile, odd)])
def test_every_exchange_is_shown(store: Path, tape: str) -> None:
    """Decoded, whatever it holds, and as a state where there is one; with control characters as escapes."""
    name = tape.replace(" ", "-")
    with Store.open(store, readonly=True) as opened:
        seqs = opened.exchanges.seqs(opened.runs.get(name))
    for seq in seqs:
        shown = output(store, "show", name, seq)
        check_safe(shown)
        assert f"every byte: playhead show {name} {seq} --raw" in shown
        state = ask(store, "state", name, seq, "--full")
        check_safe(state.stdout)
        assert state.exception is None or isinstance(state.exception, StoreError)
    for word in ("--lost", "--orphans"):
        check_safe(output(store, "context", name, word, "--full"))


def test_a_model_call_is_decoded(store: Path) -> None:
    """What is new in its context since the call before of its lane, and its answer put together from its pieces."""
    shown = output(store, "show", "claude-code-with-a-sub-agent", 8)
    assert "new since 5 (recorded: the answer is in the request)\n" in shown
    assert "  tool result Task\n    30 days.\n" in shown
    assert '  calls Bash\n    {"command": "curl -X POST https://shop.test/refunds' in shown
    assert "event:" not in shown


def test_a_body_that_no_dialect_reads_is_shown_with_what_was_tried(store: Path) -> None:
    """As bytes, or as text where it is text."""
    shown = output(store, "show", "odd", 1)
    assert "no dialect reads it: anthropic claims it, and its body is not of that form\n" in shown
    assert "  00 01 02 ff 00 01 02 ff" in shown
    assert "… 144 more bytes: playhead show odd 1 --raw" in shown
    assert "no dialect reads it: none of " in output(store, "show", "odd", 2)


def test_grep_says_that_nothing_matches(store: Path) -> None:
    assert "no step matches 'zzz'" in ask(store, "show", "crew", "--grep", "zzz").stdout
    assert "no step matches" not in ask(store, "show", "crew", "--grep", ".").stdout


def test_grep_finds_what_the_page_cuts(store: Path) -> None:
    """The whole of a step is searched, whatever its case."""
    found = output(
        store, "show", "claude-code-with-a-sub-agent", "--grep", "REFUNDS WITHIN", "--json"
    )
    assert [step["kind"] for step in json.loads(found)["steps"]] == ["tool result"]


def test_follow_ends_with_the_run(store: Path) -> None:
    """Of a run that has ended everything is there at once."""
    page = output(store, "show", "handoff", "--follow")
    assert page == output(store, "show", "handoff")


def test_raw_is_what_was_recorded(store: Path) -> None:
    """The rows of the log, and every byte of an exchange."""
    rows = json.loads(output(store, "show", "crew", "--raw", "--json"))
    assert rows == []  # the tapes of tests have no log
    assert "event: content_block_delta" in output(store, "show", "twins", 1, "--raw")


def test_rewind_lists_the_step_before_each_effect(store: Path) -> None:
    """The model call that asked for it, with its evidence, and how to look at it."""
    assert output(store, "rewind", "claude-code-with-a-sub-agent", "--before-effect") == (
        "effect 9 POST https://shop.test/refunds 200, 12 bytes\n"
        "  before it: 8 (asked for by Bash, recorded: its URL is in the arguments)\n"
        '    Bash {"command": "curl -X POST https://shop.test/refunds -d order=7"}\n'
        "    playhead state claude-code-with-a-sub-agent 8\n"
    )
    (one, two, three) = json.loads(output(store, "rewind", "troubled", "--before-effect", "--json"))
    assert [one["seq"], two["marks"], three["effect"]] == [
        5,
        ["possible duplicate of 6", "idle for 300 s"],
        8,
    ]
    assert "has no effects" in output(store, "rewind", "twins", "--before-effect")


def test_a_state_is_the_context_exactly_as_sent(store: Path) -> None:
    """The body in its JSON has the canonical hash of the request that was recorded."""
    rules = compile_rules()
    for make in TAPES:
        tape = make()
        for exchange in tape.exchanges:
            if exchange.request_class is not RequestClass.INFERENCE:
                continue
            name = tape.name.replace(" ", "-")
            told = json.loads(output(store, "state", name, exchange.seq, "--json"))
            sent = replace(exchange.request, body=json.dumps(told["body"]).encode())
            assert told["seq"] == exchange.seq
            forms = [
                canonical(one, exchange.request_class, rules) for one in (sent, exchange.request)
            ]
            assert fingerprint(forms[0]) == fingerprint(forms[1])


def test_a_state_without_a_step_is_the_last(store: Path) -> None:
    """And says how another one is named."""
    result = ask(store, "state", "claude-code-with-a-sub-agent")
    assert "state at 10: the context of model call 10\n" in result.stdout
    assert "SEQ or --at TIME names another one" in result.stderr


def test_a_state_at_a_time(store: Path) -> None:
    """A time since the run began, and one of the clock; between two calls it is that of the earlier."""
    name = "claude-code-with-a-sub-agent"
    assert "context of model call 3\n" in output(store, "state", name, "--at", "+3s")
    told = json.loads(output(store, "state", name, "--at", "2023-11-14T22:13:28.0+00:00", "--json"))
    assert told["seq"] == 8


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("show", "crew", "99"), "it has 1 to 3, and the nearest is 3"),
        (("show", "crew", "0", "--raw"), "it has 1 to 3, and the nearest is 1"),
        (("state", "crew", "99"), "it has 1 to 3, and the nearest is 3"),
        (("state", "nothing", "1"), "it holds none at all"),
        (("state", "crew", "first"), "expected its SEQ, as 7, or SEQ.PART"),
        (("state", "crew", "1.7"), "has no 1.7: exchange 1 is no WebSocket"),
        (("state", "nothing"), "it holds none at all"),
        (("state", "crew", "--at", "noon"), "'noon' is no time: expected +12s"),
        (("state", "crew", "--at", "+9h"), "had ended before '+9h': it went from"),
        (("state", "nothing", "--at", "+1s"), "holds no exchange"),
        (("state", "crew", "1", "--at", "+1s"), "expected a SEQ or --at TIME"),
        (("state", "odd", "1"), "has no model call at 1 or before it"),
        (("context", "crew", "99", "--lost"), "it has 1 to 3, and the nearest is 3"),
        (("context", "crew", "1"), "expected --lost or --orphans"),
        (
            ("context", "claude-code-with-a-sub-agent", "4", "--lost"),
            "is no model call of an agent",
        ),
        (
            ("context", "claude-code-with-a-sub-agent", "2", "--lost"),
            "is no model call of an agent",
        ),
        (("rewind", "crew"), "expected --before-effect"),
        (("show", "crew", "--grep", "("), "'(' is no regular expression"),
        (("show", "crew", "1", "--follow"), "leave out SEQ"),
        (("show", "crew", "--graph", "dot", "--json"), "--graph draws the whole run"),
        (("show", "crow"), "unknown run 'crow'"),
        (("blame", "crew", "99", "$.a"), "it has 1 to 3, and the nearest is 3"),
        (("blame", "crew", "1", "$.messages[99]"), "has no $.messages[99]"),
        (("blame", "nothing", "1", "$.a"), "it holds none at all"),
        (("cache", "crow"), "unknown run 'crow'"),
    ],
)
def test_bad_input_is_told_what_would_be_right(
    store: Path, words: tuple[str, ...], told: str
) -> None:
    """The range and the nearest of what is not there, and what was expected; never a traceback."""
    error = ask(store, *words).exception
    assert error is not None
    assert told in getattr(error, "message", str(error))


def test_forty_steps_of_a_coding_agent_fit_sixty_lines(tmp_path: Path) -> None:
    """Also where answers call several tools at once, and each tool that was called is named."""
    tape, asked = Tape("forty"), [user("Fix the tests.")]
    names = ("Bash", "Read", "Edit", "Grep")
    for number in range(40):
        calls = [
            {
                "type": "tool_use",
                "id": f"toolu_{number}_{place}",
                "name": names[(number + place) % 4],
                "input": {"file_path": f"src/module_{number}_{place}.py", "text": "x" * 50},
            }
            for place in range(1 + (number % 5 == 0) * 3)
        ]
        tape.model(anthropic(asked, tools=names), anthropic_stream(*calls, stop="tool_use"))
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": "ok"} for call in calls
        ]
        asked = [*asked, {"role": "assistant", "content": calls}, user(*results)]

    write_store(tmp_path / "store", lambda opened: write_run(opened, "forty", tape.exchanges))
    lines = output(tmp_path / "store", "show", "forty").splitlines()
    assert len(lines) <= 60
    page = "\n".join(lines)
    assert sum(page.count(name) for name in names) == sum(
        1 + (number % 5 == 0) * 3 for number in range(40)
    )


def test_the_end_of_a_long_conversation_is_shown(tmp_path: Path) -> None:
    """What comes before it is said in bytes, and `--full` has it."""
    tape = Tape("long")
    tape.model(anthropic([user(f"line {number:03}") for number in range(100)]), None)

    write_store(tmp_path / "store", lambda opened: write_run(opened, "long", tape.exchanges))
    shown = output(tmp_path / "store", "state", "long", 1)
    assert "  … 60 earlier parts of 480 bytes: --full\n" in shown
    assert ("line 059" in shown, "line 060" in shown, "line 099" in shown) == (False, True, True)
    assert "line 000" in output(tmp_path / "store", "state", "long", 1, "--full")


def test_a_line_of_ten_megabytes_is_one_line(tmp_path: Path) -> None:
    """A page stays a page, and what is left out is said in bytes."""
    body = b"y" * 10_000_000

    write_store(
        tmp_path / "store",
        lambda opened: write_run(opened, "large", [make_exchange(1, response=make_response(body))]),
    )
    assert max(map(len, output(tmp_path / "store", "show", "large").splitlines())) <= 80
    shown = output(tmp_path / "store", "show", "large", 1)
    assert len(shown) < 10_000
    assert "more bytes: playhead show large 1 --raw" in shown
