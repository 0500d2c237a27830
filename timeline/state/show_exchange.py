"""One exchange, decoded: what a model was newly told and answered, or what another request said and got.

A body that no dialect reads is shown as text or bytes, with what was tried.
"""

import json
from collections.abc import Iterator

from ...tape.dialects import DIALECTS, find_dialect
from ...tape.dialects.common.dialect import Claim
from ...tape.exchange import Exchange, HttpRequest, HttpResponse, RequestClass
from ...tape.records.content_coding import read_codings, undo_what_came
from ..reading.exact_body_values import read_json, render_json
from ..receipts.effects import describe_outcome
from ..show.fit import fit
from ..show.listing import WIDTH, show_time
from ..show.multiline_text import safe_line, show_block
from ..steps.model_call import ModelCall
from ..steps.model_context import Context
from ..steps.step import Edge
from .context_parts import split_items

_MOST = 4000
"""Characters of a body or a part that are shown."""
_BYTES = 64 * 1024 * 1024
_DUMPED = 256
"""Bytes that are shown of what is no text."""


def show_head(exchange: Exchange) -> Iterator[str]:
    """Give what is known of an exchange in a few lines."""
    request = exchange.request
    told = f"{exchange.seq}  {exchange.request_class.value}, {exchange.verdict.value}"
    yield fit(f"{told}: {exchange.reason}", WIDTH)
    yield f"  {safe_line(f'{request.method} {request.url}'[:2000])}"
    first = exchange.response.head_us if exchange.response is not None else None
    head = f", head after {show_time(first)}" if first is not None else ""
    yield f"  {fit(f'{describe_outcome(exchange)}{head}, known after {show_time(exchange.end_us)}', WIDTH - 2)}"
    if exchange.repeat is not None:
        yield f"  [{exchange.repeat.kind.value} of {exchange.repeat.of}]"
    for warning in exchange.warnings:
        if warning.startswith("injected: "):
            yield f"  [{safe_line(warning[:2000])}]"


def show_call(call: ModelCall, before: tuple[ModelCall, Edge] | None, how: str) -> Iterator[str]:
    """Give a model call: what is new in its context, and its answer.

    before: the call before of its lane, against which the context was read.
    how: command that shows more.
    """
    context = call.context
    model = context.asked.model or "model not stated"
    tools = len(context.asked.tools)
    yield fit(
        f"model {model} ({context.asked.dialect}), {len(context.items)} messages, {tools} tools",
        WIDTH,
    )
    usage = call.answer.usage if call.answer is not None else None
    if usage is not None:
        counted = usage.count()
        cached = f", {counted.read} of them cached" if counted.read else ""
        told = f"{counted.asked or 0} in{cached}, {counted.said or 0} out"
        yield f"tokens: {told if counted.is_stated else 'not stated'}"
    if before is not None:
        edge = before[1]
        yield fit(f"new since {edge.source} ({edge.evidence.value}: {edge.rule})", WIDTH)
    else:
        yield "asked, from the beginning"
    yield from _show_new(context, how)
    yield "answered"
    yield from _show_answer(call, how)


def _show_new(context: Context, how: str) -> Iterator[str]:

    for part in split_items(context.new()):
        name = f" {safe_line(part.name)}" if part.name else ""
        yield f"  {safe_line(part.what)}{name}"
        yield from show_block(part.text, "    ", _MOST, how)


def _show_answer(call: ModelCall, how: str) -> Iterator[str]:
    answer = call.answer
    if answer is None:
        yield "  nothing that could be read"
        return
    if answer.error is not None:
        yield f"  error: {safe_line(answer.error.message[:_MOST])}"
    message = answer.message
    if message is not None and message.thinking:
        yield "  thought"
        yield from show_block(message.thinking, "    ", _MOST, how)
    if message is not None and (message.text or message.refusal):
        yield "  says"
        yield from show_block(message.text or message.refusal or "", "    ", _MOST, how)
    for one in answer.tool_calls:
        yield f"  calls {safe_line(one.name)}"
        text = one.text or json.dumps(one.arguments, ensure_ascii=False)
        yield from show_block(text, "    ", _MOST, how)
    end = "cut before its end" if not answer.complete else answer.finish_reason or ""
    if end:
        yield f"  ({safe_line(end)})"


def show_bodies(exchange: Exchange, how: str) -> Iterator[str]:
    """Give the bodies of an exchange that is no model call, or one that no dialect reads."""
    if exchange.request_class is RequestClass.INFERENCE:
        yield from _tried(exchange.request)
    yield from _show_body("sent", exchange.request, how)
    if exchange.response is not None:
        yield from _show_body("got", exchange.response, how)


def _tried(request: HttpRequest) -> Iterator[str]:
    """Say which dialects were tried, and why none reads a request."""
    found = find_dialect(request)
    if found is not None:
        yield f"no dialect reads it: {found.name} claims it, and its body is not of that form"
        return
    maybe = [one.name for one in DIALECTS if one.claim(request) is Claim.MAYBE]
    if maybe:
        yield fit(f"no dialect reads it: by its path it may be {', '.join(maybe)};", WIDTH)
        yield "its body has the form of none"
    else:
        yield f"no dialect reads it: none of {len(DIALECTS)} claims its method, host and path"


def _show_body(title: str, message: HttpRequest | HttpResponse, how: str) -> Iterator[str]:
    if message.spilled is not None:
        yield f"{title} {message.spilled.size} bytes, in a file of the store"
        return
    body = message.body
    coding = read_codings(message.headers)
    if coding:
        plain = undo_what_came(body, coding, _BYTES)
        body = body if plain is None else plain
    kind = (message.header(b"content-type") or b"").decode("latin-1")
    yield fit(f"{title} {len(body)} bytes{f', {kind}' if kind else ''}", WIDTH)
    if not body:
        return
    try:
        text = body.decode()
    except UnicodeDecodeError:
        for at in range(0, min(len(body), _DUMPED), 24):
            yield f"  {body[at : at + 24].hex(' ')}"
        if len(body) > _DUMPED:
            yield f"  … {len(body) - _DUMPED} more bytes: {how}"
        return
    tree = read_json(body) if len(text) <= _MOST else None
    if tree is not None and tree.lost:
        yield fit(f"  as it came: {safe_line('; '.join(tree.lost))}", WIDTH)
    elif tree is not None:
        text = render_json(tree.value)
    yield from show_block(text, "  ", _MOST, how)
