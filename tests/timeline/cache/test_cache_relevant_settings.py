"""Verdicts on a prompt cache where more than one cause is left: none of these is called recorded."""

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from playhead.store import Store
from playhead.tests.support.agent_tapes import S, Tape
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import write_run
from playhead.timeline.cache.judge_model_call import CacheCall
from playhead.timeline.cache.prompt_cache_misses import find_misses
from playhead.timeline.state.calls_before import Exchanges

_MARK = {"cache_control": {"type": "ephemeral"}}
_SYSTEM = "You are a careful agent. " + "Long instructions about the shop and its rules. " * 200
_TOOLS = [{"name": "t", "description": "x y z " * 40, "input_schema": {"type": "object"}}]
_URL = "https://api.anthropic.com/v1/messages"
_KEY = {"x-api-key": "dummy", "anthropic-version": "2023-06-01"}


class Case(NamedTuple):
    """A third call, after one that wrote 5,000 tokens and one that read them and wrote 80."""

    name: str
    verdict: str
    evidence: str | None
    part: str | None = None
    change: dict[str, Any] = {}  # noqa: RUF012, read only
    """Members of its request."""
    first: str = "blue"
    """A word of the first message."""
    headers: dict[str, str] = {}  # noqa: RUF012, read only
    read: int = 0
    written: int = 5160
    wait_s: int = 10
    answered_by: str = "claude-sonnet-4-5"
    other_s: int = 0
    """Seconds before it another agent, or a call that failed, used the same prompt."""
    failed: bool = False


_SKILLS = {"skills": [{"type": "anthropic", "skill_id": "pdf", "version": "latest"}]}
_SCHEMA = {"type": "json_schema", "schema": {"type": "object"}}
_OTHER_SYSTEM = [{"type": "text", "text": f"v2 {_SYSTEM}", **_MARK}]

CASES = [
    # What moved is behind the system prompt, which was marked, is the same, and was not read either.
    Case("message", "prefix broke", "inferred", "messages", first="red"),
    Case(
        "choice of tools",
        "prefix broke",
        "inferred",
        "tool_choice",
        {"tool_choice": {"type": "any"}},
    ),
    Case(
        "thinking",
        "prefix broke",
        "inferred",
        "thinking",
        {"thinking": {"type": "enabled", "budget_tokens": 2000}},
    ),
    # What else the provider puts before the prompt, or may.
    Case(
        "mcp servers",
        "prefix broke",
        "inferred",
        "mcp_servers",
        {"mcp_servers": [{"type": "url", "url": "https://m.test", "name": "m"}]},
    ),
    Case("output format", "prefix broke", "inferred", "output_format", {"output_format": _SCHEMA}),
    Case(
        "output config",
        "prefix broke",
        "inferred",
        "output_config",
        {"output_config": {"format": _SCHEMA}},
    ),
    Case("skills", "prefix broke", "inferred", "container", {"container": _SKILLS}),
    Case("beta", "unknown", None, None, headers={"anthropic-beta": "context-1m-2025-08-07"}),
    Case("version", "unknown", None, None, headers={"anthropic-version": "2024-01-01"}),
    Case("speed", "unknown", None, None, {"speed": "fast"}),
    Case(
        "editing of the context",
        "unknown",
        None,
        None,
        {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
    ),
    Case("a member that nobody knows", "unknown", None, None, {"brand_new": {"a": 1}}),
    Case(
        "answered by another model", "unknown", None, None, answered_by="claude-sonnet-4-5-20251231"
    ),
    # Two causes at once.
    Case(
        "system and mcp servers",
        "prefix broke",
        "inferred",
        "system",
        {"system": _OTHER_SYSTEM, "mcp_servers": [{"name": "m"}]},
    ),
    Case(
        "system and beta",
        "prefix broke",
        "inferred",
        "system",
        {"system": _OTHER_SYSTEM},
        headers={"anthropic-beta": "x"},
    ),
    Case(
        "lifetime and output format",
        "lifetime ran out",
        "inferred",
        None,
        {"output_format": _SCHEMA},
        wait_s=900,
    ),
    Case(
        "lifetime and beta",
        "lifetime ran out",
        "inferred",
        None,
        headers={"anthropic-beta": "x"},
        wait_s=900,
    ),
    # Another call kept the same prompt alive meanwhile.
    Case("kept by another agent", "lifetime ran out", "inferred", None, wait_s=400, other_s=100),
    Case(
        "kept by a call that failed",
        "lifetime ran out",
        "inferred",
        None,
        wait_s=400,
        other_s=100,
        failed=True,
    ),
    # Controls: no other cause is left.
    Case("system", "prefix broke", "recorded", "system", {"system": _OTHER_SYSTEM}),
    Case(
        "tools",
        "prefix broke",
        "recorded",
        "tools",
        {"tools": [{"name": "u", "input_schema": {}}, *_TOOLS]},
    ),
    Case(
        "model",
        "prefix broke",
        "recorded",
        "model",
        {"model": "claude-opus-4-1"},
        answered_by="claude-opus-4-1",
    ),
    Case(
        "message, what is before it read",
        "prefix broke",
        "recorded",
        "messages",
        first="red",
        read=4900,
        written=260,
    ),
    Case(
        "choice of tools, what is before it read",
        "prefix broke",
        "recorded",
        "tool_choice",
        {"tool_choice": {"type": "any"}},
        read=4900,
        written=260,
    ),
    Case("lifetime", "lifetime ran out", "recorded", None, wait_s=900),
    Case(
        "lifetime, the other was earlier",
        "lifetime ran out",
        "recorded",
        None,
        wait_s=900,
        other_s=700,
    ),
    Case("provider", "provider", "recorded", None),
    Case(
        "provider, another temperature",
        "provider",
        "recorded",
        None,
        {"temperature": 0.5, "max_tokens": 7, "metadata": {"user_id": "b"}},
    ),
    Case(
        "provider, another header",
        "provider",
        "recorded",
        None,
        headers={"x-stainless-retry-count": "1"},
    ),
]


def _user(text: str, *, marked: bool = False) -> dict[str, Any]:
    part = {"type": "text", "text": text} | (_MARK if marked else {})
    return {"role": "user", "content": [part]}


def _said(number: int) -> str:
    return f"here is a long enough answer number {number} of the model"


def _history(count: int, first: str, task: str = "mug") -> list[Any]:
    asked = [f"question number 1 about the {first} {task}"]
    asked += [f"question {number} of them" for number in range(2, count + 1)]
    found: list[Any] = []
    for number, text in enumerate(asked[:-1], 1):
        found += [_user(text), {"role": "assistant", "content": _said(number)}]
    return [*found, _user(asked[-1], marked=True)]


def _tape(case: Case) -> Tape:
    tape = Tape(case.name)

    def ask(
        messages: list[Any],
        said: str,
        read: int,
        written: int,
        wait_s: int = 10,
        failed: bool = False,
        process: int = 1,
        **more: Any,
    ) -> None:
        headers = _KEY | more.pop("headers", {})
        by = more.pop("answered_by", "claude-sonnet-4-5")
        body = {
            "model": "claude-sonnet-4-5",
            "max_tokens": 100,
            "system": [{"type": "text", "text": _SYSTEM, **_MARK}],
            "tools": _TOOLS,
            "messages": messages,
        }
        usage = {
            "input_tokens": 10,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "output_tokens": 5,
        }
        content = [{"type": "text", "text": said}]
        answer: dict[str, Any] = {
            "id": f"msg_{len(tape.exchanges)}",
            "type": "message",
            "role": "assistant",
            "model": by,
            "content": content,
            "stop_reason": "end_turn",
            "usage": usage,
        }
        if failed:
            answer = {
                "type": "error",
                "error": {"type": "overloaded_error", "message": "Overloaded"},
            }
        made = make_response(answer, 529 if failed else 200)
        tape.model(
            make_request(_URL, body | more, headers), made, wait_us=wait_s * S, process=process
        )

    ask(_history(1, "blue"), _said(1), 0, 5000)
    ask(_history(2, "blue"), _said(2), 5000, 80)
    wait_s = case.wait_s
    if case.other_s:
        wait_s = case.other_s
        messages = (
            _history(3, "blue")
            if case.failed
            else _history(1, "green", "lamp, which is another task")
        )
        ask(
            messages,
            "something else entirely was said by another agent",
            4900,
            60,
            case.wait_s - case.other_s,
            case.failed,
            process=1 if case.failed else 2,
        )
    ask(
        _history(3, case.first),
        _said(3),
        case.read,
        case.written,
        wait_s,
        headers=case.headers,
        answered_by=case.answered_by,
        **case.change,
    )
    return tape


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with a run for each case."""
    folder = tmp_path_factory.mktemp("causes") / "store"

    async def write() -> None:
        with Store.open(folder) as opened:
            for case in CASES:
                await write_run(opened, _run_name(case), _tape(case).exchanges)

    asyncio.run(write())
    with Store.open(folder, readonly=True) as opened:
        yield opened


def _run_name(case: Case) -> str:
    return case.name.replace(",", "").replace(" ", "-")


def _last(store: Store, case: Case) -> CacheCall:
    return find_misses(Exchanges(store, store.runs.get(_run_name(case))))[-1]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_a_verdict_is_certain_only_where_no_other_cause_is_left(store: Store, case: Case) -> None:
    """The verdict, what moved and the evidence; controls stay recorded."""
    found = _last(store, case)
    evidence = found.evidence.value if found.evidence is not None else None
    part = (
        found.moved.part
        if found.moved is not None and found.verdict.value == "prefix broke"
        else None
    )
    told = found.verdict.value, evidence, part
    assert told == (case.verdict, case.evidence, case.part), found.reason


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("message", "the part before it was not read either"),
        ("mcp servers", "mcp_servers"),
        ("beta", "anthropic-beta"),
        ("a member that nobody knows", "brand_new"),
        ("lifetime and beta", "anthropic-beta"),
        ("system and mcp servers", "mcp_servers"),
        ("kept by another agent", "3"),
    ],
)
def test_the_other_cause_is_named(store: Store, name: str, told: str) -> None:
    """In the reason, by its name in the request."""
    case = next(one for one in CASES if one.name == name)
    assert told in _last(store, case).reason
