"""A credential that an agent makes of what an answer gave: `org7:TOKEN`, `TOKEN.user`, `token="TOKEN"`, `acme-TOKEN`.

Whoever sends the token of another tenant in it, or an invented one, is refused; found by a tester who had the documents alone.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

import pytest

from playhead.tape.redaction.placeholders.placeholder import _MADE_WHOLE, Placeholders
from playhead.tests.support.story import Call, recorded

TOKENS = "tok4f0c81ab77e0c2d93b6a", "kX9vQ2mL7pR4tZ8wB5nCdF6"
INVENTED = "c0ffee11c0ffee22c0ffee3"
KEYS = (
    "sk-proj-0a9B8c7D6e5F4g3H2i1J0k9L8m7N6o5P4q3R2s1T",
    "sk-proj-Zq8Lw3Rt6Vy1Xe5Mn2p9Jd4Zq8Lw3Rt6Vy1Xe5Mn",
)
OTHER_KEY = "sk-proj-T1s2R3q4P5o6N7m8L9k0J1i2H3g4F5e6D7c8B9a0"

Sent = tuple[str, Mapping[str, str], object]
"""Path, header fields and body of a request."""
MADE: dict[str, Callable[[str], Sent]] = {
    "user before": lambda token: ("/1", {"Authorization": f"Bearer org7:{token}"}, {"a": 1}),
    "user behind": lambda token: ("/2", {"Authorization": f"Bearer {token}.user"}, {"a": 1}),
    "path": lambda token: ("/3", {"Authorization": f"Token acme/{token}"}, {"a": 1}),
    "bar": lambda token: ("/4", {"X-Api-Key": f"{token}|7"}, {"a": 1}),
    "comma": lambda token: ("/5", {"X-Auth-Token": f"org7,{token}"}, {"a": 1}),
    "cookie": lambda token: ("/6", {"Cookie": f"sid={token}.9"}, {"a": 1}),
    "query": lambda token: (f"/7?access_token=org7:{token}", {}, {"a": 1}),
    "member": lambda token: ("/8", {}, {"api_key": f"org7:{token}"}),
    "nested": lambda token: ("/9", {"Authorization": f"Bearer a:b/{token}.c"}, {"a": 1}),
    "parameter": lambda token: ("/10", {"Authorization": f"Token token={token}"}, {"a": 1}),
    "quoted": lambda token: ("/11", {"Authorization": f'Token token="{token}"'}, {"a": 1}),
    "hyphen": lambda token: ("/12", {"Authorization": f"Bearer acme-{token}"}, {"a": 1}),
    "underscore": lambda token: ("/13", {"X-Api-Key": f"{token}_acme"}, {"a": 1}),
    "at": lambda token: ("/14", {"Authorization": f"Bearer {token}@acme"}, {"a": 1}),
    "Hawk": lambda token: ("/15", {"Authorization": f'Hawk id="{token}"'}, {"a": 1}),
    "Digest": lambda token: ("/16", {"Authorization": f'Digest username="{token}"'}, {"a": 1}),
    "JSON": lambda token: ("/17", {"Authorization": f'Bearer {{"t": "{token}"}}'}, {"a": 1}),
    "JSON in a cookie": lambda token: ("/18", {"Cookie": f"auth={quote(json.dumps({'token': token}))}"}, {"a": 1}),
    "quoted cookie": lambda token: ("/19", {"Cookie": f'auth="{token}"'}, {"a": 1}),
    "scheme in a cookie": lambda token: ("/20", {"Cookie": f"s=Bearer%20{token}"}, {"a": 1}),
    "pairs in a cookie": lambda token: ("/21", {"Cookie": f"s=u=1&t={token}"}, {"a": 1}),
    "query with a hyphen": lambda token: (f"/22?access_token=acme-{token}", {}, {"a": 1}),
    "member with a hyphen": lambda token: ("/23", {}, {"api_key": f"acme-{token}"}),
    "brackets": lambda token: ("/24", {"X-Auth-Token": f"<{token}>"}, {"a": 1}),
}  # fmt: skip


def _use(make: Callable[[str], Sent], token: str) -> Call:
    path, headers, body = make(token)
    return Call(f"POST {path}", body, headers=headers)


async def test_a_token_in_a_credential_is_compared_with_what_an_answer_gave(
    store_dir: Path,
) -> None:
    """The token of another tenant is refused, and so is an invented one; the own one is served, and `exact`."""
    logins = [Call(f"POST /login/{at}", answer={"access_token": one}) for at, one in enumerate(TOKENS)]  # fmt: skip
    calls = [_use(make, TOKENS[0]) for make in MADE.values()]
    async with recorded(store_dir, [*logins, *calls]) as story:
        for which in (0, 1, None):
            given = [json.loads(said.body)["access_token"] for said in await story.play(logins)]
            token = INVENTED if which is None else given[which]
            said = await story.play([_use(make, token) for make in MADE.values()])
            receipt = await story.end()
            told = dict(zip(MADE, (one.status for one in said), strict=True))
            assert told == dict.fromkeys(MADE, 200 if which == 0 else 424), which
            assert receipt.faithful is (which == 0), receipt.divergences
            assert which != 0 or dict(receipt.matched) == {"exact": len(logins) + len(calls)}


async def test_a_token_that_an_answer_says_in_plain_is_compared_in_a_credential(
    store_dir: Path,
) -> None:
    """Nothing in the answer is known as a secret."""
    login = Call("POST /login", answer=f"your session is '{TOKENS[0]}'")
    calls = [_use(make, TOKENS[0]) for make in MADE.values()]
    async with recorded(store_dir, [login, *calls]) as story:
        for token in (TOKENS[0], INVENTED):
            await story.play([login])
            said = await story.play([_use(make, token) for make in MADE.values()])
            await story.end()
            told = dict(zip(MADE, (one.status for one in said), strict=True))
            assert told == dict.fromkeys(MADE, 200 if token == TOKENS[0] else 424)


async def test_a_key_of_an_earlier_body_is_the_one_in_a_credential(store_dir: Path) -> None:
    """A prompt has a key, and a field has it behind a user; another key there is another account."""
    ask = Call("POST /ask", {"prompt": f"deploy with {KEYS[0]}"})
    async with recorded(store_dir, [ask, _use(MADE["user before"], KEYS[0])]) as story:
        for key in (KEYS[0], OTHER_KEY):
            said = await story.play([ask, _use(MADE["user before"], key)])
            assert [one.status for one in said] == [200, 200 if key == KEYS[0] else 424], key
            await story.end()


@pytest.mark.parametrize("use", ["user before", "plain"])
async def test_a_key_that_an_earlier_body_says_in_plain_is_the_one_in_a_field(
    use: str, store_dir: Path
) -> None:
    """Nothing in the body is known as a secret; `note it down: KEY` is served, and another key behind it is not."""
    ask = Call("POST /ask", {"note": f"it is {TOKENS[0]}, take it"})
    make = {**MADE, "plain": lambda token: ("/1", {"X-Api-Key": token}, {"a": 1})}[use]
    async with recorded(store_dir, [ask, _use(make, TOKENS[0])]) as story:
        for key in (TOKENS[0], INVENTED):
            said = await story.play([ask, _use(make, key)])
            assert [one.status for one in said] == [200, 200 if key == TOKENS[0] else 424], key
            await story.end()


ROTATED = (
    (KEYS[0], OTHER_KEY),
    ("0f4c81ab-77e0-4c2d-93b6-a1b2c3d4e5f6", "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d"),
    ("kX9v-2mL7pR4tZ8wB5nCdF6q_Zr3-aaB1cD2eF3g", "Q2mL7pR4tZ8w_5nCdF6qkX9vZr3aaB1cD2eF3g-x"),
)


@pytest.mark.parametrize(("key", "other"), ROTATED)
async def test_a_rotated_key_in_a_credential_is_served(
    key: str, other: str, store_dir: Path
) -> None:
    """Nobody gave it: it may be another one, as long as one stands for one."""
    calls = [_use(make, key) for make in MADE.values()]
    async with recorded(store_dir, calls) as story:
        said = await story.play([_use(make, other) for make in MADE.values()])
        assert [one.status for one in said] == [200] * len(calls)
        assert (await story.end()).faithful


async def test_keys_that_change_places_in_credentials_are_refused(store_dir: Path) -> None:
    """Two tenants of one tape, each behind the same user."""
    calls = [Call(f"POST /{key[-4:]}", {"a": 1}, headers={"Authorization": f"Bearer org7:{key}"}) for key in KEYS]  # fmt: skip
    swapped = [Call(call.what, call.body, headers=other.headers) for call, other in zip(calls, reversed(calls), strict=True)]  # fmt: skip
    async with recorded(store_dir, calls) as story:
        assert [one.status for one in await story.play(calls)] == [200, 200]
        assert (await story.end()).faithful
        assert [one.status for one in await story.play(swapped)] == [424, 424]
        await story.end()


async def test_a_tape_of_before_plays_as_it_did(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its placeholders are of whole credentials: those of now are made alike, so values of another request are still found."""
    begin = Placeholders.__init__

    def begin_old(made: Placeholders, key: bytes) -> None:
        begin(made, key)
        made._way = _MADE_WHOLE

    prompts = [Call("POST /ask", {"prompt": f"deploy with {key}"}) for key in (*KEYS, OTHER_KEY)]
    made = _use(MADE["user before"], KEYS[0])
    monkeypatch.setattr(Placeholders, "__init__", begin_old)
    async with recorded(store_dir, [prompts[0], prompts[1], made]) as story:
        monkeypatch.setattr(Placeholders, "__init__", begin)
        said = await story.play([prompts[0], prompts[1], made])
        assert [one.status for one in said] == [200, 200, 200]
        receipt = await story.end()
        assert (receipt.faithful, dict(receipt.matched)) == (True, {"exact": 3})
        said = await story.play([prompts[0], prompts[2]])
        assert [one.status for one in said] == [200, 424]
        await story.end()
