"""A rule that ignores one place of a body has replaced values in its other places count."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from playhead.config import IgnoreRule, Playback, parse_match
from playhead.tests.support.story import Call, recorded

KEYS = tuple(
    "ghp_" + value
    for value in (
        "kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eX",
        "mR4cx8Wn3qY7zBd5KsgV2tD9vP6jHu1fL0aQ",
    )
)
"""Keys of a known format."""
ANY = parse_match("POST http://127.0.0.1:*/*")
RULES = {
    "json": IgnoreRule(ANY, json=("$.request_id",)),
    "json, absent": IgnoreRule(ANY, json=("$.nothing",)),
    "form": IgnoreRule(ANY, form=("request_id",)),
    "regex": IgnoreRule(ANY, regex=("req_[0-9a-f]+",)),
}
REFUSE = Playback(effects="refuse")


def bodies(request_id: str, *keys: str) -> dict[str, Any]:
    """A body of each sort with two keys in it."""
    first, second = keys
    return {
        "member": {"request_id": request_id, "key": first, "other": second},
        "prompt": {"request_id": request_id, "text": f"use {first} and {second} now"},
        "text": f"req_0123 use {first} and {second}".encode(),
    }


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["member", "prompt", "text"])
async def test_another_value_is_refused(store_dir: Path, rule: str, name: str) -> None:
    """One that is new, and two that are in one another's place; the same ones are served."""
    first, second = KEYS
    call = Call("POST /v1/users", bodies("one", first, second)[name])
    changed = [
        replace(call, body=bodies("one", *keys)[name])
        for keys in ((first, first), (second, first), (second, second))
    ]
    ignore = (RULES[rule],)
    async with recorded(
        store_dir, [call], recording={"ignore": ignore}, playback=REFUSE, ignore=ignore
    ) as story:
        for other in changed:
            (said,) = await story.play([other])
            assert said.status == 424
            assert said.divergence["kind"] == "changed"
        (said,) = await story.play([call])
        assert said.status == 200


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_shipped_rules_leave_values_counted(store_dir: Path, path: str) -> None:
    """They ignore one member of a model call."""
    calls = [
        Call(
            f"POST {path}", {"model": "m", "messages": [{"role": "user", "content": f"use {key}"}]}
        )
        for key in KEYS
    ]
    async with recorded(store_dir, [calls[0]], playback=REFUSE) as story:
        (said,) = await story.play([calls[1]])
    assert said.status == 424


async def test_a_value_in_an_ignored_place_does_not_count(store_dir: Path) -> None:
    """It is what the rule says."""
    rule = (IgnoreRule(ANY, json=("$.key",)),)
    calls = [Call("POST /v1/users", {"key": key, "n": 1}) for key in KEYS]
    async with recorded(
        store_dir, [calls[0]], recording={"ignore": rule}, playback=REFUSE, ignore=rule
    ) as story:
        (said,) = await story.play([calls[1]])
    assert said.status == 200
