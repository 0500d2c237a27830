"""Why prompt caches missed: planted causes with the counts that the providers would state."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playhead.store import Store
from playhead.tests.adversary.planted.cache import cache
from playhead.tests.support.agent_tapes import Tape, chat, said
from playhead.tests.support.counts import FULL
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import write_run
from playhead.tests.support.planted_runs import make_exchanges
from playhead.timeline.cache.judge_model_call import CacheCall, Verdict
from playhead.timeline.cache.prompt_cache_misses import find_misses
from playhead.timeline.cache.render import render_misses
from playhead.timeline.state.calls_before import Exchanges
from playhead.timeline.steps.step import Evidence

CASES = cache(60 if FULL else 30)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with all planted runs."""
    folder = tmp_path_factory.mktemp("cache") / "store"

    async def write() -> None:
        with Store.open(folder) as opened:
            for case in CASES:
                await write_run(opened, case["id"], make_exchanges(case["run"]))

    asyncio.run(write())
    with Store.open(folder, readonly=True) as opened:
        yield opened


def wrong(found: CacheCall, truth: dict[str, Any]) -> str:
    """Say what is wrong with a verdict; empty where nothing is."""
    if found.verdict.value not in truth["accept"]:
        sure = ", with certainty" if found.evidence is Evidence.RECORDED else ""
        return f"{found.verdict.value}, not {truth['verdict']}{sure}: {found.reason}"
    if found.verdict.value == "prefix broke" and truth["part"] is not None:
        moved = found.moved
        assert moved is not None
        if (moved.part, moved.path) != (truth["part"], truth["path"]):
            return f"{moved.part} at {moved.path}, not {truth['part']} at {truth['path']}"
        assert found.before is not None
        if (found.sent.call.seq, found.before.call.seq) != (truth["sent_by"], truth["was"]):
            return "another call sent it"
    return "" if found.sent.read == truth["read"] else "another count"


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_a_planted_cause_is_found(store: Store, case: dict[str, Any]) -> None:
    """The verdict of each call, and of a broken prefix what moved first and where."""
    found = {
        one.sent.call.seq: one for one in find_misses(Exchanges(store, store.runs.get(case["id"])))
    }
    told = {call["seq"]: wrong(found[call["seq"]], call) for call in case["truth"]["calls"]}
    assert not any(told.values()), (case["kind"], told)


def test_a_miss_costs_what_reading_would_have_saved(store: Store) -> None:
    """By the table of prices, where it is installed; of a model that it does not know nothing is said."""
    pytest.importorskip("genai_prices")
    calls = find_misses(Exchanges(store, store.runs.get(CASES[0]["id"])))
    (miss,) = [one for one in calls if one.verdict.value == "prefix broke"]
    usage = miss.sent.usage
    assert usage is not None
    assert miss.cost_nano_usd is not None
    # What is read costs a tenth of what is sent, what is written a quarter more than that.
    per_token = {"claude-opus-4-5-20251101": 5000, "claude-sonnet-4-5-20250929": 3000}
    price = per_token[miss.sent.model or ""]
    assert miss.cost_nano_usd == round(miss.missed * price * (1.25 - 0.1))


@pytest.mark.parametrize(
    ("prompts", "verdicts"),
    [
        (["You are a clerk. Use the first page.", "You are a clerk. Use the other page."], "broke"),
        (
            [
                "Cart: a mug.\nYou are a shop agent.\n" + "Be kind.\n" * 99,
                "Cart: two cups and a plate.\nYou are a shop agent.\n" + "Be kind.\n" * 99,
            ],
            "broke",
        ),
        (["Cart of customer Ana: a mug.", "Cart of customer Ana: two cups and a plate."], "broke"),
        (["You are the refund desk.", "You are the shipping desk."], "another lane"),
        (["Role: refund desk.", "Role: shipping desk."], "another lane"),
        (
            [
                "Cart: a mug.\nYou are the refund desk.",
                "Cart: two cups.\nYou are the shipping desk.",
            ],
            "another lane",
        ),
    ],
    ids=["looked up", "first line", "a field alone", "another role", "a field", "behind a field"],
)
async def test_a_prompt_that_is_new_each_turn_breaks_the_prefix(
    tmp_path: Path, prompts: list[str], verdicts: str
) -> None:
    """A chat goes on under another system prompt, so its miss counts; where another agent goes on, that is said."""
    tape, asked = Tape("chat"), [said("user", "Please explain the contract.")]
    for at, prompt in enumerate(prompts):
        text = f"The answer number {at} is unmistakable."
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 3000 + at, "completion_tokens": 20, "total_tokens": 3020 + at}
        usage |= {"prompt_tokens_details": {"cached_tokens": 0}}  # type: ignore[dict-item]
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = {"id": f"a{at}", "model": "gpt-5.1", "choices": [choice], "usage": usage}
        tape.model(chat([said("system", prompt), *asked]), make_response(answer))
        asked += [said("assistant", text), said("user", "And what about the rest?")]
    with Store.open(tmp_path / "store") as opened:
        found = find_misses(Exchanges(opened, await write_run(opened, "chat", tape.exchanges)))
    lines = "\n".join(render_misses(found, "chat"))
    if verdicts == "broke":
        assert [one.verdict for one in found] == [Verdict.FIRST, Verdict.BROKE]
        assert found[1].moved is not None
        assert (found[1].moved.part, found[1].missed > 0) == ("system", True)
    else:
        assert [one.verdict for one in found] == [Verdict.FIRST, Verdict.FIRST]
        assert "it goes on from 1, of another lane" in lines


_RULES = "Follow the policy text of the shop.\n" * 1000


def _openai(system: str, asked: list[dict[str, Any]]) -> Any:
    return chat([said("system", system), *asked])


def _gemini(system: str, asked: list[dict[str, Any]]) -> Any:
    roles = {"assistant": "model"}
    contents = [
        {"role": roles.get(one["role"], one["role"]), "parts": [{"text": one["content"]}]}
        for one in asked
    ]
    body = {"systemInstruction": {"parts": [{"text": system}]}, "contents": contents}
    url = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent"
    return make_request(url, body)


def _openai_answer(text: str, prompt: int, read: int) -> Any:
    usage = {"prompt_tokens": prompt, "completion_tokens": 5, "total_tokens": prompt + 5}
    more = {"prompt_tokens_details": {"cached_tokens": read}}
    choice = {"index": 0, "finish_reason": "stop"}
    choice |= {"message": {"role": "assistant", "content": text}}
    answer = {"id": text, "model": "gpt-5.1", "choices": [choice], "usage": {**usage, **more}}
    return make_response(answer)


def _gemini_answer(text: str, prompt: int, read: int) -> Any:
    usage = {"promptTokenCount": prompt, "candidatesTokenCount": 5}
    usage["cachedContentTokenCount"] = read
    content = {"role": "model", "parts": [{"text": text}]}
    candidates = [{"content": content, "finishReason": "STOP"}]
    return make_response({"candidates": candidates, "usageMetadata": usage})


@pytest.mark.parametrize(("count", "verdict"), [(0, Verdict.UNKNOWN), (1024, Verdict.FIRST)])
async def test_a_prompt_of_which_tokens_were_read_is_not_too_short(
    tmp_path: Path, count: int, verdict: Verdict
) -> None:
    """The least size of its model is another one then."""
    tape = Tape("short")
    asked = [said("user", "Hello.")]
    tape.model(_gemini(_RULES, asked), _gemini_answer("Hello to you.", 1000, count))
    with Store.open(tmp_path / "store") as opened:
        found = find_misses(Exchanges(opened, await write_run(opened, "short", tape.exchanges)))
    assert [one.verdict for one in found] == [verdict]


@pytest.mark.parametrize(
    ("ask", "answer"),
    [(_openai, _openai_answer), (_gemini, _gemini_answer)],
    ids=["chat", "gemini"],
)
@pytest.mark.parametrize(("read", "evidence"), [(0, "inferred"), (8832, "recorded")])
async def test_what_is_before_the_changed_line_of_a_prompt_counts(
    tmp_path: Path, ask: Any, answer: Any, read: int, evidence: str
) -> None:
    """The last of 1,001 lines is another one: if the lines before were not read either, that is no proof."""
    tape, asked = Tape("steps"), list[dict[str, Any]]()
    for at, count in enumerate((0, read)):
        asked.append(said("user", f"This is question number {at}."))
        text = f"The answer number {at} is unmistakable."
        tape.model(
            ask(f"{_RULES}Steps left: {9 - at}.", asked), answer(text, 9000 + 50 * at, count)
        )
        asked.append({"role": "assistant", "content": text})
    with Store.open(tmp_path / "store") as opened:
        found = find_misses(Exchanges(opened, await write_run(opened, "steps", tape.exchanges)))
    assert found[1].verdict is Verdict.BROKE
    assert 0.98 < found[1].kept < 1
    assert found[1].evidence is not None
    assert found[1].evidence.value == evidence


async def test_a_call_that_asks_for_no_cache_is_told_the_mark_of_its_dialect(
    tmp_path: Path,
) -> None:
    """Bedrock has another word than Anthropic for what is to be cached."""
    for name, mark, url in (
        ("bedrock", "cachePoint", f"{_BEDROCK}/converse"),
        ("anthropic", "cache_control", "https://api.anthropic.com/v1/messages"),
    ):
        content = [{"text": "Please say yes."} | ({"type": "text"} if name == "anthropic" else {})]
        body = {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": content}]}
        tape = Tape(name)
        tape.model(make_request(url, body), make_response(_UNCACHED[mark]))
        with Store.open(tmp_path / name) as opened:
            exchanges = Exchanges(opened, await write_run(opened, name, tape.exchanges))
            (found,) = find_misses(exchanges)
        assert found.reason == f"the request asks for no cache: it has no {mark}"


_BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0"
_UNCACHED: dict[str, dict[str, Any]] = {
    "cachePoint": {
        "output": {"message": {"role": "assistant", "content": [{"text": "Yes."}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 9, "outputTokens": 1, "cacheReadInputTokens": 0},
    },
    "cache_control": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "Yes."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 9, "output_tokens": 1, "cache_read_input_tokens": 0},
    },
}


MINUTE = 60_000_000
"""Microseconds."""
_TEXT = "Follow the policy text of the shop. " * 400


def _marked(turns: int, *, long: str | None = "1h", mark: bool = True) -> Any:
    """A request to Anthropic with a mark on the system prompt, if `long` says for how long, and one of 5 minutes on the last message."""
    system: dict[str, Any] = {"type": "text", "text": _TEXT}
    if long is not None:
        system["cache_control"] = {"type": "ephemeral", "ttl": long}
    asked: list[dict[str, Any]] = []
    for at in range(turns):
        asked.append({"role": "user", "content": [{"type": "text", "text": f"Question {at}."}]})
        if at < turns - 1:
            asked.append({"role": "assistant", "content": f"The answer {at} is long enough."})
    if mark:
        asked[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "system": [system], "messages": asked}
    url = "https://api.anthropic.com/v1/messages"
    return make_request(url, body, {"anthropic-version": "2023-06-01"})


def _counted(turns: int, read: int, written: int, for_1h: int | None = None) -> Any:
    usage: dict[str, Any] = {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_read_input_tokens": read,
    }
    if for_1h is not None:
        kept = {"ephemeral_1h_input_tokens": for_1h, "ephemeral_5m_input_tokens": written - for_1h}
        usage["cache_creation"] = kept
    text = {"type": "text", "text": f"The answer {turns - 1} is long enough."}
    answer = {"id": "m", "type": "message", "role": "assistant", "content": [text]}
    answer |= {"model": "claude-sonnet-4-5", "stop_reason": "end_turn"}
    return make_response(answer | {"usage": usage | {"cache_creation_input_tokens": written}})


@pytest.mark.parametrize(
    ("wait_min", "read", "long", "verdict", "told"),
    [
        (7, 4900, "1h", Verdict.LIFETIME, "5m since the last use, as the mark at $.messages[0]"),
        # Without the system prompt, which was still there.
        (7, 0, "1h", Verdict.PROVIDER, "which shorter marks keep, had run out"),
        (70, 0, "1h", Verdict.LIFETIME, "1h since the last use, as the mark at $.system[0]"),
        (1, 4900, "1h", Verdict.PROVIDER, "4,900 tokens were read"),
        (1, 5000, "1h", Verdict.HIT, "was read"),
        (7, 0, "5m", Verdict.LIFETIME, "5m since the last use, as the mark asks"),
        (7, 0, None, Verdict.LIFETIME, "5m since the last use, as the mark asks"),
        (1, 0, None, Verdict.PROVIDER, "0 tokens were read"),
    ],
)
async def test_each_mark_has_its_own_lifetime(
    tmp_path: Path, wait_min: int, read: int, long: str | None, verdict: Verdict, told: str
) -> None:
    """The messages' mark may run out while the system prompt's lives on."""
    tape = Tape("marks")
    tape.model(_marked(1, long=long), _counted(1, 0, 5000))
    asked = _marked(2, long=long)
    tape.model(asked, _counted(2, read, 5200 - read), wait_us=wait_min * MINUTE)
    with Store.open(tmp_path / "store") as opened:
        found = find_misses(Exchanges(opened, await write_run(opened, "marks", tape.exchanges)))
    assert found[1].verdict is verdict
    assert told in found[1].reason


@pytest.mark.parametrize(
    ("read", "verdict", "missed"),
    [(5000, Verdict.HIT, 0), (4900, Verdict.BROKE, 100), (0, Verdict.BROKE, 5000)],
)
async def test_who_goes_back_and_reads_all_that_was_kept_of_it_misses_nothing(
    tmp_path: Path, read: int, verdict: Verdict, missed: int
) -> None:
    """What is behind the last mark was in no cache."""
    tape = Tape("back")
    for turns, count in ((1, 0), (2, 5000), (1, read)):
        tape.model(_marked(turns), _counted(turns, count, 5000 - count if turns == 1 else 200))
    with Store.open(tmp_path / "store") as opened:
        found = find_misses(Exchanges(opened, await write_run(opened, "back", tape.exchanges)))
    assert (found[2].verdict, found[2].missed) == (verdict, missed)


@pytest.mark.parametrize(
    ("prompt", "read", "verdict", "missed"),
    [
        (2000, 1920, Verdict.HIT, 0),
        (2047, 1920, Verdict.HIT, 0),
        (2000, 1792, Verdict.BROKE, 128),
        (2048, 1920, Verdict.BROKE, 128),
    ],
)
async def test_who_goes_back_may_read_whole_steps_alone(
    tmp_path: Path, prompt: int, read: int, verdict: Verdict, missed: int
) -> None:
    """OpenAI counts what it read in steps of 128 tokens."""
    tape, asked = Tape("back"), [said("user", "Question.")]
    tape.model(_openai(_RULES, asked), _openai_answer("A first long answer.", prompt, 0))
    more = [*asked, said("assistant", "A first long answer."), said("user", "And?")]
    tape.model(_openai(_RULES, more), _openai_answer("A second one.", 2200, 1920))
    tape.model(_openai(_RULES, asked), _openai_answer("A third one.", prompt, read))
    with Store.open(tmp_path / "store") as opened:
        found = find_misses(Exchanges(opened, await write_run(opened, "back", tape.exchanges)))
    assert (found[2].verdict, found[2].missed) == (verdict, missed)


@pytest.mark.parametrize(
    ("for_1h", "read", "verdict", "missed"),
    [
        # As the answer states it, whatever the bytes say.
        (3000, 0, Verdict.PROVIDER, 3000),
        (3000, 2900, Verdict.PROVIDER, 100),
        (3000, 3000, Verdict.LIFETIME, 2000),
        (0, 0, Verdict.LIFETIME, 5000),
        # By bytes: the system prompt is nearly all.
        (None, 0, Verdict.PROVIDER, 4973),
    ],
)
async def test_only_what_lives_on_is_missed_by_the_provider(
    tmp_path: Path, for_1h: int | None, read: int, verdict: Verdict, missed: int
) -> None:
    """What marks of 5 minutes keep had run out: it is nobody's doing, and costs what it costs."""
    tape = Tape("marks")
    tape.model(_marked(1), _counted(1, 0, 5000, for_1h))
    tape.model(_marked(2), _counted(2, read, 5200 - read, 0), wait_us=7 * MINUTE)
    with Store.open(tmp_path / "store") as opened:
        found = find_misses(Exchanges(opened, await write_run(opened, "marks", tape.exchanges)))
    assert (found[1].verdict, found[1].missed) == (verdict, missed)
    if verdict is Verdict.PROVIDER:
        assert f"{5000 - found[1].expected:,} more, which shorter marks" in found[1].reason
        lines = "\n".join(render_misses(found, "marks"))
        assert "shorter marks keep, had run out" in " ".join(lines.split())


async def test_a_mark_that_is_gone_is_named_where_it_was(tmp_path: Path) -> None:
    """The request has none, so no place of it is shown; the model is as it was."""
    tape = Tape("marks")
    tape.model(_marked(1), _counted(1, 0, 5000))
    tape.model(_marked(2, long=None, mark=False), _counted(2, 0, 0))
    with Store.open(tmp_path / "store") as opened:
        found = find_misses(Exchanges(opened, await write_run(opened, "marks", tape.exchanges)))
    lines = [line.strip() for line in render_misses(found, "marks")]
    assert "the request has no mark; it was at $.messages[0].content[0]" in lines
    assert "the model" not in lines
