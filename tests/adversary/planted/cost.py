"""Planted bills: requests to models with retries, cut streams, refusals and caches, and what each of them took.

`cost(count, seed)` gives cases of 20 requests each, so that 50 cases are 1,000 requests. Exchanges may have

    "refused": True   the proxy refused it: it was never on the wire, and status and response are None.
    "cut": True       the connection broke inside the answer: `response` has the events that had come.

A case is `{"id", "kind", "run", "truth"}`; the truth has

    "requests"   one for each exchange: "seq", "model" (as served, else as asked for; None where no model was asked),
                 "provider", "sent" (whether it was on the wire), and tokens: "input" (all of it, cached ones too), "read"
                 and "written" (of the input), "written_1h" (of `written`), "output" (reasoning too), "reasoning".
                 "at_least": more may have been billed than was stated: the stream was cut, or stated no usage.
                 Errors took nothing. Counting tokens is free, whatever number its answer has.
    "models"     the sums by model: the tokens, "requests", and "at_least", how many of them are.
    "sent"       how many exchanges were on the wire: what the upstream counted.

`dollars(request)` prices one by genai-prices alone: None where it knows no price, which is not $0.
"""

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any

from .run import Agent, Run
from .streams import stream
from .wire import Plain, answer, request_headers, said, tool, url, usage

_MODELS = (
    ("anthropic", "anthropic", "claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
    ("anthropic", "anthropic", "claude-opus-4-5-20251101", "claude-opus-4-5-20251101"),
    ("anthropic", "anthropic", "claude-haiku-4-5-20251001", "claude-haiku-4-5-20251001"),
    ("openai-chat", "openai", "gpt-4.1", "gpt-4.1-2025-04-14"),
    ("openai-chat", "openai", "gpt-5-mini-2025-08-07", "gpt-5-mini-2025-08-07"),
    ("openai-responses", "openai", "gpt-5", "gpt-5-2025-08-07"),
    ("openai-responses", "openai", "gpt-6-sol", "gpt-6-sol"),
    ("openai-chat", "openai", "gpt-6-luna", "gpt-6-luna"),
    ("gemini", "google", "gemini-2.5-flash", "gemini-2.5-flash"),
    ("gemini", "google", "gemini-2.5-pro", "gemini-2.5-pro"),
    ("openai-chat", "acme", "acme-reasoner-9", "acme-reasoner-9"),
)
_TOKENS = ("input", "read", "written", "written_1h", "output", "reasoning")
_SHAPES = (
    *("whole", "whole", "stream", "stream", "cached", "cached", "retried", "reasoned"),
    *("cut", "cut early", "silent", "refused", "forbidden", "counted", "embedded", "other"),
)


class _Bill:
    """A run on its way, and what its requests took."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.run = rng, Run(rng)
        self.requests: list[Plain] = []

    def note(self, seq: int, model: str | None, provider: str | None, **facts: Any) -> None:
        """Note what a request took; what is not named is nothing."""
        request: Plain = {
            "seq": seq,
            "model": model,
            "provider": provider,
            "sent": True,
            "at_least": False,
        }
        started = self.run[seq]["started_ms"]
        self.requests.append(request | dict.fromkeys(_TOKENS, 0) | facts | {"started_ms": started})

    def body(self, dialect: str, model: str, streams: bool) -> Plain:
        agent = Agent(
            self.run,
            dialect,
            "You are brief.",
            [tool("find", "text")],
            model=model,
            streams=streams,
        )
        agent.hear(f"Question {self.rng.randrange(10**9)}: what is it?")
        return agent.body()

    def send(
        self, dialect: str, asked: str, body: Plain, response: Any, status: int = 200, **more: Any
    ) -> int:
        """Send a request to a model."""
        place = url(dialect, asked, isinstance(response, list))
        if asked.startswith("acme"):
            place = "https://llm.acme.test/v1/chat/completions"
        headers = request_headers(dialect) | more.pop("headers", {})
        took = self.rng.randint(300, 3000)
        return self.run.add(
            "POST", place, body, response, status, request_headers=headers, took_ms=took, **more
        )


def _counts(rng: Random, shape: str, dialect: str, model: str) -> Plain:
    counts: Plain = dict.fromkeys(_TOKENS, 0)
    counts |= {"input": rng.randrange(200, 60_000), "output": rng.randrange(1, 4_000)}
    if shape == "cached":
        counts["read"] = rng.randrange(0, counts["input"]) // 128 * 128
        if dialect == "anthropic" or model.startswith("gpt-6"):
            counts["written"] = rng.randrange(0, counts["input"] - counts["read"])
            if dialect == "anthropic" and rng.random() < 0.4:
                counts["written_1h"] = rng.randrange(0, counts["written"] + 1)
    if shape == "reasoned" and dialect != "anthropic":
        counts["reasoning"] = rng.randrange(0, counts["output"])
    return counts


def _stated(dialect: str, counts: Plain) -> Plain:
    """Write the counts as the provider does, with its details."""
    if dialect == "gemini" and counts["reasoning"]:
        shown = usage(dialect, counts | {"output": counts["output"] - counts["reasoning"]})
        return shown | {
            "thoughtsTokenCount": counts["reasoning"],
            "totalTokenCount": counts["input"] + counts["output"],
        }
    shown = usage(dialect, counts)
    if dialect == "anthropic" and counts["written"]:
        shown["cache_creation"] = {
            "ephemeral_5m_input_tokens": counts["written"] - counts["written_1h"],
            "ephemeral_1h_input_tokens": counts["written_1h"],
        }
    elif dialect == "openai-responses":
        shown["output_tokens_details"] = {"reasoning_tokens": counts["reasoning"]}
    elif dialect == "openai-chat":
        shown["completion_tokens_details"] = {"reasoning_tokens": counts["reasoning"]}
    return shown


def _asked(bill: _Bill, shape: str) -> None:
    rng = bill.rng
    dialect, provider, asked, served = rng.choice(_MODELS)
    counts = _counts(rng, shape, dialect, asked)
    streams = shape in ("stream", "cut", "cut early", "silent") or rng.random() < 0.3
    if shape == "silent":
        dialect, provider, asked, served = _MODELS[3]
    body = bill.body(dialect, asked, streams)
    if shape == "silent":
        del body["stream_options"]
    whole = answer(
        dialect,
        served,
        said(f"It is {rng.randrange(10**9)}, as {asked} says."),
        _stated(dialect, counts),
        rng,
    )
    if shape == "silent":
        del whole["usage"]
    if shape == "retried":
        _failures(bill, dialect, provider, asked, body)
    response: Any = stream(dialect, whole, rng) if streams else whole
    if shape.startswith("cut"):
        response = response[: 1 if shape == "cut early" else len(response) // 2]
    seq = bill.send(dialect, asked, body, response)
    if shape.startswith("cut"):
        bill.run[seq]["cut"] = True
        counts |= _before_the_cut(dialect, counts)
    elif shape == "silent":
        counts = dict.fromkeys(_TOKENS, 0)
    bill.note(
        seq, served, provider, at_least=shape.startswith("cut") or shape == "silent", **counts
    )


def _before_the_cut(dialect: str, counts: Plain) -> Plain:
    """Give what a stream had stated before it was cut: Anthropic's first event has the input, Gemini's each has all."""
    if dialect == "anthropic":
        return {"output": 1}
    return {} if dialect == "gemini" else dict.fromkeys(_TOKENS, 0)


def _failures(bill: _Bill, dialect: str, provider: str, asked: str, body: Plain) -> None:
    for number in range(bill.rng.randint(1, 2)):
        status = bill.rng.choice((429, 500, 503, 529))
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        headers = {"x-stainless-retry-count": str(number)}
        bill.note(bill.send(dialect, asked, body, error, status, headers=headers), asked, provider)


def _beside(bill: _Bill, shape: str) -> None:
    rng, run = bill.rng, bill.run
    dialect, provider, asked, _ = rng.choice(_MODELS)
    if shape == "other":
        bill.note(
            run.add("GET", "https://shop.test/orders/7", response={"usage": {"input_tokens": 5}}),
            None,
            None,
        )
    elif shape == "forbidden":
        error = {"error": {"type": "invalid_request_error", "message": "no"}}
        seq = bill.send(
            dialect, asked, bill.body(dialect, asked, False), error, rng.choice((400, 401, 403))
        )
        bill.note(seq, asked, provider)
    elif shape == "refused":
        seq = bill.send(dialect, asked, bill.body(dialect, asked, False), None)
        run[seq].update(refused=True, status=None, response_headers={})
        bill.note(seq, asked, provider, sent=False)
    elif shape == "counted":
        body: Plain = {
            "model": "claude-sonnet-4-5",
            "messages": [{"role": "user", "content": "How long is it?"}],
        }
        place = "https://api.anthropic.com/v1/messages/count_tokens"
        seq = run.add(
            "POST",
            place,
            body,
            {"input_tokens": 4711},
            request_headers=request_headers("anthropic"),
        )
        bill.note(seq, None, None)
    else:
        model, tokens = "text-embedding-3-small", rng.randrange(5, 5_000)
        row = {"object": "embedding", "index": 0, "embedding": [0.25, -0.5]}
        body = {
            "object": "list",
            "data": [row],
            "model": model,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
        seq = run.add(
            "POST", "https://api.openai.com/v1/embeddings", {"model": model, "input": "x"}, body
        )
        bill.note(seq, model, "openai", input=tokens)


def _case(rng: Random) -> tuple[_Bill, Plain]:
    bill = _Bill(rng)
    while len(bill.requests) < 20:
        shape = rng.choice(_SHAPES)
        if shape == "retried" and len(bill.requests) > 16:
            continue
        if shape in ("refused", "forbidden", "counted", "embedded", "other"):
            _beside(bill, shape)
        else:
            _asked(bill, shape)
    models: dict[str, Counter[str]] = {}
    for one in bill.requests:
        if one["model"] and one["sent"]:
            sums = models.setdefault(one["model"], Counter())
            sums.update(
                {key: one[key] for key in _TOKENS}
                | {"requests": 1, "at_least": int(one["at_least"])}
            )
    sent = sum(one["sent"] for one in bill.requests)
    return bill, {
        "requests": bill.requests,
        "models": {name: dict(one) for name, one in models.items()},
        "sent": sent,
    }


def cost(count: int = 50, seed: int = 22) -> list[Plain]:
    """Give bills of 20 requests each."""
    cases = []
    for index in range(count):
        bill, truth = _case(Random(f"cost {seed} {index}"))
        cases.append(
            {"id": f"cost-{index:03}", "kind": "bill", "run": bill.run.exchanges, "truth": truth}
        )
    return cases


def dollars(request: Plain) -> Decimal | None:
    """Price a request of a truth; 0 where nothing was billed, None where the model has no known price.

    Raises: ImportError where genai-prices is not installed.
    """
    from genai_prices import Usage, calc_price

    if request["model"] is None or not request["input"] + request["output"]:
        return Decimal(0)
    counted = Usage(
        input_tokens=request["input"],
        cache_read_tokens=request["read"],
        cache_write_tokens=request["written"],
        cache_write_1h_tokens=request["written_1h"],
        output_tokens=request["output"],
    )
    when = datetime.fromtimestamp(request["started_ms"] / 1000, UTC)
    try:
        price = calc_price(
            counted, request["model"], provider_id=request["provider"], genai_request_timestamp=when
        )
    except LookupError:
        return None
    return price.total_price
