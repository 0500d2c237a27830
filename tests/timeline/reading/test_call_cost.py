"""What a model call has used, read from its answer: tokens as stated, money where the model has a price."""

import json
import sys
from typing import Any

import pytest

from playhead.tape.exchange import Request, Response
from playhead.tape.policy.limits import CountedUsage
from playhead.tests.support.exchanges import make_request, make_response
from playhead.timeline.reading.call_cost import read_counted_usage

OPENAI = "POST https://api.openai.com/v1/chat/completions"
HERE = "POST http://127.0.0.1:9/v1/chat/completions"
ANTHROPIC = "POST https://api.anthropic.com/v1/messages"
NOW = 1_760_000_000_000_000_000  # October 2025: prices change


def _request(what: str, model: str = "gpt-4o") -> Request:
    asked = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    return make_request(what, json.dumps(asked).encode())


def _chat(model: str | None, **usage: Any) -> Response:
    message = {"role": "assistant", "content": "hello"}
    said: dict[str, Any] = {
        "id": "x",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    if model is not None:
        said["model"] = model
    if usage:
        said["usage"] = usage
    return _json(said)


def _json(said: Any, status: int = 200) -> Response:
    head = ((b"content-type", b"application/json"),)
    return make_response(json.dumps(said).encode(), status=status, headers=head)


def _iteration(asked: int, said: int, model: str | None = None) -> dict[str, Any]:
    kind = "advisor_message" if model else "compaction"
    return {"type": kind, "model": model, "input_tokens": asked, "output_tokens": said}


def _said(**usage: object) -> Response:
    content = [{"type": "text", "text": "hello"}]
    message = {"id": "m", "type": "message", "role": "assistant", "content": content}
    return _json({**message, "model": "claude-sonnet-4-20250514", "usage": usage})


TOKENS = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
CACHED = {**TOKENS, "prompt_tokens_details": {"cached_tokens": 500}}


@pytest.mark.parametrize(
    ("request_", "response", "expected"),
    [
        # 2.50 and 10 USD a million tokens; of the cached ones half of that.
        (_request(OPENAI), _chat("gpt-4o", **TOKENS), (1000, 100, 0, 3_500_000)),
        (_request(OPENAI), _chat("gpt-4o-2024-08-06", **TOKENS), (1000, 100, 0, 3_500_000)),
        (_request(OPENAI), _chat("gpt-4o", **CACHED), (1000, 100, 500, 2_875_000)),
        # Behind another address the dialect says whose prices hold.
        (_request(HERE), _chat("gpt-4o", **TOKENS), (1000, 100, 0, 3_500_000)),
        # What was served has no price or no name: that of what was asked for.
        (_request(OPENAI), _chat("our-own-name", **TOKENS), (1000, 100, 0, 3_500_000)),
        (_request(OPENAI), _chat(None, **TOKENS), (1000, 100, 0, 3_500_000)),
        # A model that is not in the table has no price, and is not free.
        (_request(OPENAI, "llama-9"), _chat("llama-9", **TOKENS), (1000, 100, 0, None)),
        (_request(HERE, "llama-9"), _chat("llama-9", **TOKENS), (1000, 100, 0, None)),
        # Here cached tokens stand beside the input: 3, 0.30 and 3.75 USD a million, 15 for what is said.
        (
            _request(ANTHROPIC, "claude-sonnet-4-20250514"),
            _said(
                input_tokens=100,
                output_tokens=10,
                cache_read_input_tokens=1000,
                cache_creation_input_tokens=200,
            ),
            (1300, 10, 1000, 1_500_000),
        ),
        # A compaction is billed beside the message: as much of the model once more.
        (
            _request(ANTHROPIC, "claude-sonnet-4-20250514"),
            _said(input_tokens=100, output_tokens=10, iterations=[_iteration(900, 90)]),
            (1000, 100, 0, 4_500_000),
        ),
        # An advisor costs what its own model costs: 5 and 25 USD a million.
        (
            _request(ANTHROPIC, "claude-sonnet-4-20250514"),
            _said(
                input_tokens=100,
                output_tokens=10,
                iterations=[_iteration(900, 90, "claude-opus-4-5")],
            ),
            (1000, 100, 0, 450_000 + 6_750_000),
        ),
        (
            _request(ANTHROPIC, "claude-sonnet-4-20250514"),
            _said(
                input_tokens=100,
                output_tokens=10,
                iterations=[_iteration(900, 90, "no-such-model")],
            ),
            (1000, 100, 0, None),
        ),
    ],
)
def test_tokens_and_money_of_an_answer(
    request_: Request, response: Response, expected: tuple[int, int, int, int | None]
) -> None:
    """Asked, answered, of the first those from a cache, and billionths of a dollar."""
    assert read_counted_usage(request_, response, NOW, priced=True) == CountedUsage(True, *expected)
    plain = CountedUsage(True, *expected[:3], None)
    assert read_counted_usage(request_, response, NOW, priced=False) == plain


@pytest.mark.parametrize(
    "response",
    [
        _chat("gpt-4o"),
        _json({"something": "else"}),
        make_response(b"\xff\x00 no answer of a model"),
        make_response(b""),
    ],
)
def test_an_answer_that_states_no_tokens_is_unknown(response: Response) -> None:
    """It is not counted as nothing."""
    assert read_counted_usage(_request(OPENAI), response, NOW, priced=True) == CountedUsage()


def test_without_a_table_every_price_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens are counted all the same."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    found = read_counted_usage(_request(OPENAI), _chat("gpt-4o", **TOKENS), NOW, priced=True)
    assert found == CountedUsage(True, 1000, 100, 0, None)


@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
def test_what_the_server_refused_costs_nothing(status: int) -> None:
    """Nor is it unknown."""
    response = _json({"error": {"message": "no", "type": "server_error"}}, status)
    assert read_counted_usage(_request(OPENAI), response, NOW, priced=True) is None


def test_audio_has_a_price_of_its_own() -> None:
    """As `genai-prices` charges it; where it is not stated how much of it was cached, the price is unknown."""
    pytest.importorskip("genai_prices")
    url = "POST https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent"
    audio = [{"modality": "AUDIO", "tokenCount": 900_000}]
    said = {"candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}, "index": 0}]}

    def price(**usage: Any) -> int | None:
        told = {
            "modelVersion": "gemini-2.5-flash",
            "usageMetadata": {"candidatesTokenCount": 0, **usage},
        }
        asked = make_request(url, json.dumps({"contents": []}).encode())
        found = read_counted_usage(asked, _json({**said, **told}), NOW, priced=True)
        assert found is not None
        return found.nano_usd

    assert price(promptTokenCount=1_000_000) == 300_000_000
    assert price(promptTokenCount=1_000_000, promptTokensDetails=audio) == 930_000_000
    assert price(promptTokenCount=1_000, toolUsePromptTokenCount=999_000) == 300_000_000
    cached = {
        "promptTokenCount": 1_000_000,
        "promptTokensDetails": audio,
        "cachedContentTokenCount": 9,
    }
    assert price(**cached) is None


def test_audio_without_a_price_in_the_table_has_none() -> None:
    """It is not counted as text, and an hour of it is not left out."""
    pytest.importorskip("genai_prices")

    def price(model: str, url: str, **usage: Any) -> int | None:
        found = read_counted_usage(
            _request(url, model), _chat(model, **TOKENS, **usage), NOW, priced=True
        )
        assert found is not None
        return found.nano_usd

    audio = {"prompt_tokens_details": {"audio_tokens": 1000}}
    said = {"completion_tokens_details": {"audio_tokens": 100}}
    assert price("gpt-4o-audio-preview", OPENAI, **audio) is None
    assert price("gpt-4o-audio-preview", OPENAI, **said) is None
    assert price("gpt-4o-audio-preview", OPENAI) == 3_500_000
    url = "POST https://api.mistral.ai/v1/chat/completions"
    text = price("voxtral-small-24b-2507", url)
    assert text is not None
    hour = price("voxtral-small-24b-2507", url, prompt_audio_seconds=3600)
    assert hour == text + 240_000_000
    assert price("mistral-large-latest", url, prompt_audio_seconds=3600) is None


def _gemini(model: str, usage: dict[str, Any]) -> CountedUsage:
    url = f"POST https://generativelanguage.googleapis.com/v1beta/models/{model}:generateContent"
    said = {"candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}, "index": 0}]}
    asked = make_request(url, json.dumps({"contents": []}).encode())
    answer = _json({**said, "modelVersion": model, "usageMetadata": usage})
    found = read_counted_usage(asked, answer, NOW, priced=True)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("model", "kind", "output", "expected"),
    [
        ("gemini-2.5-flash-image", "IMAGE", True, 30_000 + 30_000 * 1290),
        ("gemini-2.5-flash", "IMAGE", True, None),
        ("gemini-2.5-flash", "VIDEO", True, None),
        ("gemini-2.5-flash", "AUDIO", True, None),
        ("gemini-omni-flash-preview", "VIDEO", True, 150_000 + 17_500 * 1290),
        ("gemini-2.5-flash-preview-tts", "AUDIO", True, 50_000 + 10_000 * 1290),
        ("gemini-2.5-flash", "IMAGE", False, 300 * 1290 + 2_500 * 100),
        ("gemini-2.5-flash", "VIDEO", False, 300 * 1290 + 2_500 * 100),
        ("gemini-2.5-flash", "AUDIO", False, 1_000 * 1290 + 2_500 * 100),
        ("gemini-live-2.5-flash", "IMAGE", False, 3_000 * 1290 + 2_000 * 100),
        ("gemini-live-2.5-flash", "VIDEO", False, 3_000 * 1290 + 2_000 * 100),
    ],
)
def test_each_kind_of_token_has_its_price(
    model: str, kind: str, output: bool, expected: int | None
) -> None:
    """In billionths; what is made and has no price in the table is not counted as text."""
    pytest.importorskip("genai_prices")
    details = [{"modality": kind, "tokenCount": 1290}]
    given, made = (100, 1290) if output else (1290, 100)
    usage = {
        "promptTokenCount": given,
        "candidatesTokenCount": made,
        "totalTokenCount": given + made,
        "candidatesTokensDetails" if output else "promptTokensDetails": details,
    }
    assert _gemini(model, usage).nano_usd == expected


def test_thinking_beside_an_image_costs_as_text() -> None:
    """Its tokens are counted beside those of the image."""
    pytest.importorskip("genai_prices")
    image = [{"modality": "IMAGE", "tokenCount": 1290}]
    usage = {"promptTokenCount": 0, "candidatesTokenCount": 1290, "candidatesTokensDetails": image}
    plain = _gemini("gemini-3-pro-image-preview", usage).nano_usd
    thought = _gemini("gemini-3-pro-image-preview", {**usage, "thoughtsTokenCount": 100}).nano_usd
    assert (plain, thought) == (120_000 * 1290, 120_000 * 1290 + 12_000 * 100)
