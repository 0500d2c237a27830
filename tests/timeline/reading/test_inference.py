"""What is shown of a model call: as the dialect reads it, for people and as JSON."""

import json
from dataclasses import replace

import pytest

from playhead.tape.dialects import read_request
from playhead.tape.exchange import Exchange, Request, RequestClass, Spilled
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import make_exchange
from playhead.timeline import render_exchange
from playhead.timeline.reading.exchange_json import exchange_json

URL = "https://api.openai.com/v1/chat/completions"
FULL = {
    "model": "gpt-4o",
    "temperature": 0.5,
    "top_p": 1,
    "seed": 7,
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
}
BARE = {"messages": [{"role": "user", "content": "hi"}]}
ANSWER = make_response({"model": "gpt-4o-2024-08-06", "choices": []})


def call(request: Request, kind: RequestClass = RequestClass.INFERENCE, **more: object) -> Exchange:
    """Give a recorded model call."""
    made = make_exchange(1, request=request, kind=kind)
    return replace(made, **{"response": ANSWER, **more})  # type: ignore[arg-type]  # by name


def test_a_model_call_is_shown_with_what_may_drift() -> None:
    """Asked and served; hashes of tools and prompt are those that are compared."""
    request = make_request(URL, FULL)
    asked = read_request(request)
    assert asked is not None
    tools, system = asked.tools_hash, asked.system_hash
    assert exchange_json(call(request))["inference"] == {
        "dialect": "openai-chat",
        "model": "gpt-4o",
        "served": "gpt-4o-2024-08-06",
        "temperature": 0.5,
        "top_p": 1,
        "seed": 7,
        "tools": tools,
        "system": system,
    }
    line = (
        "model call (openai-chat): asked gpt-4o, served gpt-4o-2024-08-06, temperature 0.5, top_p 1, "
        f"seed 7, tools {tools}, system {system}"
    )
    assert line in render_exchange(call(request)).splitlines()


def test_what_is_not_stated_is_not_made_up() -> None:
    """Null as JSON, and left out for people; so is the model served, where nothing came."""
    found = call(make_request(URL, BARE), response=None)
    told = exchange_json(found)["inference"]
    assert told.pop("dialect") == "openai-chat"
    assert set(told.values()) == {None}
    assert "model call (openai-chat): nothing stated" in render_exchange(found).splitlines()


@pytest.mark.parametrize(
    "exchange",
    [
        call(make_request(URL, FULL), RequestClass.EFFECT),
        call(make_request("https://x.test/ask", FULL)),
        call(make_request(URL, b"{broken")),
        call(replace(make_request(URL), spilled=Spilled(b"d" * 32, 2, b"m" * 32))),
    ],
    ids=["no model call", "no dialect", "broken", "too large"],
)
def test_what_no_dialect_reads_is_shown_without(exchange: Exchange) -> None:
    """And raises nothing."""
    assert exchange_json(exchange)["inference"] is None
    assert "model call" not in render_exchange(exchange)


def test_a_number_that_json_has_not_is_left_out() -> None:
    """The document stays one that every reader takes."""
    body = json.dumps({**BARE, "temperature": float("nan")}).encode()
    told = exchange_json(call(make_request(URL, body)))
    assert json.dumps(told["inference"], allow_nan=False)
