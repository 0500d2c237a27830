"""Pairs of real requests that differ in what a profile leaves out; kept small in `tests/tape/canonical/profile_pairs/`.

Each file has what one client asked twice: `python -m playhead.tests.support.profile_pairs STORE RUN OTHER FILE` writes it from two recordings
of one task. Long texts and lists of tools are cut on both sides alike, and what came from an answer is the same in both, as in a replay.
"""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from playhead.config import Config
from playhead.config.profiles.shipped_profiles import shipped_profiles
from playhead.proxy.operations.open_store import open_store
from playhead.tape.canonical.canonical_request import compile_rules
from playhead.tape.exchange import Request, RequestClass

FOLDER = Path(__file__).parents[1] / "tape" / "canonical" / "profile_pairs"
_FLOWS = re.compile(r"(?:toolu_|call_|resp_[0-9]_|msg_)[0-9a-f]{20,}")
_KEPT = (
    b"user-agent",
    b"content-type",
    b"anthropic-version",
    b"anthropic-beta",
    b"originator",
    b"x-initiator",
    b"x-claude-code-session-id",
)
_LONG, _TOOLS, _MOST = 160, 1, 2
_MOST_ALIKE = 10_000


class Pair(NamedTuple):
    """What one client asked twice."""

    name: str
    recorded: Request
    asked: Request
    message: bool
    """Whether the bodies are messages of a WebSocket, of which these are the handshakes."""


def pairs() -> list[Pair]:
    """Give all pairs that are kept."""
    return [
        _read(path.stem, row)
        for path in sorted(FOLDER.glob("*.json"))
        for row in json.loads(path.read_text())
    ]


def _read(name: str, row: dict[str, Any]) -> Pair:
    recorded, asked = (
        Request(
            row["method"],
            row["scheme"],
            row["host"],
            row["port"],
            row["target"],
            "HTTP/1.1",
            tuple((key.encode(), value.encode()) for key, value in side["headers"]),
            json.dumps(side["body"], separators=(",", ":")).encode(),
        )
        for side in (row["recorded"], row["asked"])
    )
    return Pair(f"{name} {row['number']}", recorded, asked, row["message"])


def make(store: Path, first: str, second: str) -> list[dict[str, Any]]:
    """Give the pairs of two recordings as JSON."""
    found: list[dict[str, Any]] = []
    rules = compile_rules(profiles=shipped_profiles())
    with open_store(replace(Config(), store=store), readonly=True) as opened:
        runs = [opened.runs.get(name) for name in (first, second)]
        sides = [
            [
                one
                for one in opened.exchanges.all(run)
                if one.request_class is RequestClass.INFERENCE
            ]
            for run in runs
        ]
        for one, other in zip(*sides, strict=True):
            fields = {
                each.name for each in rules.of(other.request, RequestClass.INFERENCE).masks.fields
            }
            message = one.websocket is not None
            asked = [[one.request.body], [other.request.body]]
            if message:
                asked = [
                    [
                        each.data
                        for each in opened.messages.all(run, exchange.seq, -1)
                        if each.from_client
                    ]
                    for run, exchange in zip(runs, (one, other), strict=True)
                ]
            for old, new in zip(*asked, strict=True):
                body = _cut(json.loads(old), json.loads(new))
                request = one.request
                found.append(
                    {
                        "number": len(found),
                        "method": request.method,
                        "scheme": request.scheme,
                        "host": request.host,
                        "port": request.port,
                        "target": request.target,
                        "message": message,
                        "recorded": {"headers": _fields(request, fields), "body": body[0]},
                        "asked": {"headers": _fields(other.request, fields), "body": body[1]},
                    }
                )
    return found[-_MOST:]


def _count_alike(one: str, other: str) -> int:
    pairs_of = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs_of if a != b), min(len(one), len(other)))


def _near(one: str, other: str) -> tuple[str, str]:
    """Cut two long texts to their beginning, and to what stands around where they differ."""
    before = _count_alike(one, other)
    after = _count_alike(one[before:][::-1], other[before:][::-1])
    if before + after < _MOST_ALIKE:
        return one, other
    first = max(_LONG, before - _LONG)
    cut = [text[:_LONG] + text[first : len(text) - max(0, after - _LONG)] for text in (one, other)]
    return cut[0], cut[1]


def _fields(request: Request, more: set[bytes]) -> list[list[str]]:
    return [
        [name.decode(), value.decode()]
        for name, value in request.headers
        if name.lower() in {*_KEPT, *more}
    ]


def _cut(one: Any, other: Any) -> tuple[Any, Any]:
    """Cut two values alike, and give the second what came from an answer to the first."""
    if isinstance(one, dict) and isinstance(other, dict):
        made = {key: _cut(one[key], other[key]) for key in one if key in other}
        return {key: pair[0] for key, pair in made.items()}, {
            key: pair[1] for key, pair in made.items()
        }
    if isinstance(one, list) and isinstance(other, list):
        items = [_cut(*pair) for pair in zip(one, other, strict=False)]
        if len(items) > 2 * _TOOLS and all(
            "name" in str(item) and "description" in str(item) for item in items
        ):
            items = items[:_TOOLS]
        return [pair[0] for pair in items], [pair[1] for pair in items]
    if isinstance(one, str) and isinstance(other, str):
        if _FLOWS.fullmatch(one):
            return one, one
        if len(one) > _LONG and one == other:
            return _hide(one)[:_LONG], _hide(one)[:_LONG]
        return _near(_hide(one), _hide(other))
    return one, other


def _hide(text: str) -> str:
    return re.sub(r"/(?:tmp|var/tmp)/[\w/.-]+?/(work|home)\b", r"/home/me/\1", text)


if __name__ == "__main__":
    made = make(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
    Path(sys.argv[4]).write_text(json.dumps(made, indent=None, ensure_ascii=False) + "\n")
