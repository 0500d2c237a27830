"""What the receipt of a case of receipts_*.yaml comes to: the cause is named or not, what means nothing is served or not."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from playhead.timeline import Receipt
from playhead.timeline.receipts.render_text import render_receipt

from .receipt_clients import Got
from .receipt_requests import Asked, read_answer
from .receipt_sides import Case, Side

_FIELDS = ("model", "temperature", "top_p", "seed", "tools", "system")
_WHOLE = ("exit code", "stdout", "files")
_IGNORED = "ignored content"
_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive", "date"}


def judge(
    case: Case,
    receipt: Receipt,
    recorded: Side | None = None,
    present: Side | None = None,
    code: int | None = None,
) -> dict[str, Any]:
    """Give what came of a case: `outcome` in a word, and the `problem` where there is one.

    recorded, present: what its clients got; None where nobody knows.
    code: of the command; by default that of the receipt.
    """
    told = receipt.to_json()
    text = render_receipt(receipt)
    told["problems"] = present.problems if present is not None else []
    if code is not None:
        told["exit_code"] = code
    if "cause" in case:
        return _judge_changed(case, told, text)
    return _judge_unchanged(case, told, text, recorded, present)


def _judge_changed(case: Case, told: Mapping[str, Any], text: str) -> dict[str, Any]:
    root = told["root"]
    said = _shown(told)
    if case["cause"] == _IGNORED:
        right = told["faithful_but_for"] == [_IGNORED] and "exact" not in told["matched"]
        return {"outcome": "right" if right else "green", "problem": "" if right else said}
    if told["faithful"] is not False or told["exit_code"] not in (121, 122, 123, 125):
        return {"outcome": "green", "problem": f"served: {said}"}
    causes = case["cause"] if isinstance(case["cause"], list) else [case["cause"]]
    if any(names_cause(cause, root, told, text) for cause in causes):
        return {"outcome": "right", "problem": ""}
    return {"outcome": "other", "problem": f"{causes} expected: {said}"}


def names_cause(
    cause: str, root: Mapping[str, Any] | None, told: Mapping[str, Any], text: str
) -> bool:
    """Say whether a receipt names a cause of the cases."""
    if cause in _WHOLE:  # what became of the agent, whatever else differed
        return any(
            one["place"] == cause for row in told["divergences"] for one in row["differences"]
        )
    if cause == "late":
        return any("--late served" in row["text"] for row in told["divergences"])
    if root is None:
        return False
    kind, _, place = cause.partition(": ")
    if root["kind"] != kind:
        return False
    if not place:
        return True
    if kind in ("unexpected", "unused"):
        return place in root["text"]
    places = [row["place"] for row in root["differences"]]
    if kind == "drifted" and place in _FIELDS:
        return any(place in one for one in places)
    return any(
        one == place or one.startswith(tuple(place + sign for sign in ".[ ")) for one in places
    )


def _shown(told: Mapping[str, Any]) -> str:
    root = told["root"]
    if root is None:
        return f"no divergence, exit {told['exit_code']}, {told['matched']}, {told['problems']}"
    places = [row["place"] for row in root["differences"]]
    return f"{root['kind']} {places} ({root['text'][:160]})"


def _judge_unchanged(
    case: Case, told: Mapping[str, Any], text: str, recorded: Side | None, present: Side | None
) -> dict[str, Any]:
    if told["faithful"] is not True or told["exit_code"] != 0:
        return {"outcome": "refused", "problem": _shown(told)}
    problem = ""
    _, _, reported = str(case["expect"]).partition("reported: ")
    if reported and not (
        reported in told["headers_differ"]
        or reported in told["credentials_merged"]
        or (" " in reported and reported.split(" ")[1] in text)
    ):
        problem = (
            f"{reported} is not reported: {told['headers_differ']}, {told['credentials_merged']}"
        )
    matched = case.get("matched")
    if matched and set(told["matched"]) != {matched}:
        problem = f"matched {told['matched']}, not {matched}"
    wrong = _compare_answers(case, recorded, present) if recorded and present else ""
    if wrong:
        return {"outcome": "wrong", "problem": wrong}
    return {"outcome": "reported otherwise" if problem else "served", "problem": problem}


def _compare_answers(case: Case, recorded: Side, present: Side) -> str:
    if case["kind"] in ("grpc", "websocket"):
        gets = [one.get("gets") for one in _listed(case["present"])]
        for place, heard in enumerate(present.heard):
            number = gets[place] or place + 1
            if heard != recorded.heard[number - 1]:
                return f"heard {heard}, not {recorded.heard[number - 1]}"
        return ""
    if case["kind"] in ("http", "credentials"):
        gets = [one.get("gets") for one in _listed(case["present"])]
        pairs = [
            (one, recorded.answers[(gets[place] or place + 1) - 1])
            for place, one in enumerate(present.answers)
            if (gets[place] or place + 1) <= len(recorded.answers)
        ]
    else:
        pairs = list(_by_request(recorded, present))
    for (asked, now), (asked_then, then) in pairs:
        given = [status for status, _ in read_answer(asked_then, 0).interim]
        if given != [status for status, _ in now.interim if status != 100]:
            return f"{asked.url}: interim answers {now.interim}, not {given}"
        if _comparable(asked_then, then, asked) != _comparable(asked, now, asked):
            return f"{asked.url}: answered {_comparable(asked, now, asked)!r:.200}, not {_comparable(asked_then, then, asked)!r:.200}"
    return ""


def _by_request(recorded: Side, present: Side) -> Iterator[Any]:
    waiting: dict[Any, list[Any]] = {}
    for pair in recorded.answers:
        if not pair[1].ended:
            continue
        waiting.setdefault((pair[0].method, pair[0].url, pair[0].body), []).append(pair)
    for asked, got in present.answers:
        found = waiting.get((asked.method, asked.url, asked.body))
        if found and got.ended:
            yield (asked, got), found.pop(0)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _comparable(asked: Asked, got: Got, now: Asked) -> tuple[Any, ...]:
    headers = sorted((name.lower(), value) for name, value in got.headers)
    body = bytes(got.body)
    if asked.rpc_id is not None:
        then, new = (json.dumps({"id": one.rpc_id})[1:-1].encode() for one in (asked, now))
        body = body.replace(then, new)
    kept = [pair for pair in headers if pair[0] not in _HOP]
    interim = [(status, sorted(fields)) for status, fields in got.interim if status != 100]
    return got.status, kept, body, got.trailers, interim
