"""A credential that an answer gave: whoever sends it back is answered, whoever invents another one is not.

The replaced ones are what an outside tester sent; wherever the answer had the credential, and wherever the agent puts it.
"""

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from playhead.tests.support.counts import FULL
from playhead.tests.support.story import Call, Said, recorded

TOKEN = "tok4f0c81ab77e0c2d93b6a"
INVENTED = "c0ffee00c0ffee00c0ffee"
Sent = tuple[str, Mapping[str, str], object]
"""What, header fields and body of a request."""


def _find(said: Said) -> str:
    """Read the credential out of an answer, as an agent does."""
    if cookie := said.headers.get("set-cookie"):
        return cookie.partition("=")[2].partition(";")[0]
    if token := said.headers.get("x-csrf-token"):
        return token
    text = said.body.decode()
    if text.startswith("{"):
        return str(next(iter(json.loads(text).values())))
    return text.partition("'")[2].partition("'")[0]


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


SOURCES: dict[str, Call] = {
    "access_token": Call("POST /login", answer={"access_token": TOKEN}),
    "any member": Call("POST /login", answer={"value": TOKEN}),
    "text": Call("POST /login", answer=f"your session is '{TOKEN}'"),
    "HTML": Call("POST /login", answer=f"<input name=csrf value='{TOKEN}'>"),
    "cookie": Call("POST /login", answer_headers={"Set-Cookie": f"sid={TOKEN}; Path=/"}),
    "field": Call("POST /login", answer_headers={"X-CSRF-Token": TOKEN}),
}
USES: dict[str, Callable[[str], Sent]] = {
    "bearer": lambda token: ("POST /pay", {"Authorization": f"Bearer {token}"}, {"a": 1}),
    "Basic": lambda token: ("POST /pay", {"Authorization": _basic("git", token)}, {"a": 1}),
    "Basic user": lambda token: ("POST /pay", {"Authorization": _basic(token, "")}, {"a": 1}),
    "word": lambda token: ("POST /pay", {"X-Auth-Key": f"Bearer {token}"}, {"a": 1}),
    "API key": lambda token: ("POST /pay", {"X-Api-Key": token}, {"a": 1}),
    "own field": lambda token: ("POST /pay", {"X-Own-Thing": token}, {"a": 1}),
    "query": lambda token: (f"POST /pay?access_token={token}", {}, {"a": 1}),
    "body": lambda token: ("POST /pay", {}, {"csrf_token": token}),
    "path": lambda token: (f"POST /pay/{token}", {}, {"a": 1}),
}


PAIRS = [
    (source, use)
    for row, source in enumerate(SOURCES)
    for column, use in enumerate(USES)
    if FULL or (row + column) % 3 == 0
]
"""What is tried: each source with each use, or a third of them with every source and every use among them."""


def test_every_source_and_every_use_is_tried() -> None:
    """Each day, with some partner."""
    assert {source for source, _ in PAIRS} == set(SOURCES)
    assert {use for _, use in PAIRS} == set(USES)


@pytest.mark.parametrize(("source", "use"), PAIRS)
async def test_what_an_answer_gave_is_sent_back_and_nothing_else_is_taken_for_it(
    source: str, use: str, store_dir: Path
) -> None:
    """Used twice: as it was, and with an invented one in the first or the second place."""
    login, make = SOURCES[source], USES[use]

    def pay(token: str) -> Call:
        what, headers, body = make(token)
        return Call(what, body, headers=headers)

    async with recorded(store_dir, [login, pay(TOKEN), pay(TOKEN)]) as story:
        for first, second in ((False, False), (True, False), (False, True)):
            (said,) = await story.play([login])
            given = _find(said)
            calls = [pay(INVENTED if one else given) for one in (first, second)]
            answers = await story.play(calls)
            receipt = await story.end()
            assert receipt.faithful is not (first or second), receipt.divergences
            wanted = [424 if one else 200 for one in (first, second)]
            assert [one.status for one in answers] == wanted or not receipt.faithful
