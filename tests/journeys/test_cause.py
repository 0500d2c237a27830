"""A changed request says which answers its values came from."""

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from playhead.config import Answer, EffectRule, Playback, parse_match
from playhead.tests.support.process import playhead
from playhead.tests.support.story import Call, Said, recorded
from playhead.timeline import render_divergences, render_receipt

REFUSE = Playback(effects="refuse")
"""So that an effect shows how it diverged in its answer."""

FIRST, SECOND = "ord-8841029375", "ord-7730018264"
LIST = Call("GET /orders", answer={"orders": [{"id": FIRST, "of": "cust-1"}, {"id": SECOND}]})
OTHER = Call("GET /other", answer={"nothing": "of interest"})
SECRET = "sk-live-0123456789abcdef0123456789abcdef"


def order(order_id: str) -> Call:
    """An effect on an order."""
    return Call("POST /v1/cancel", {"order": order_id, "why": "asked to"})


async def test_a_value_is_traced_to_the_answers_it_stood_in(store_dir: Path) -> None:
    """The recorded one to the tape, the asked one to what this playback was given, at another seq."""
    async with recorded(store_dir, [LIST, OTHER, order(FIRST)], playback=REFUSE) as story:
        *_, said = await story.play([OTHER, LIST, order(SECOND)])
        receipt = await story.end()
    told = said.divergence
    assert told["kind"] == "changed"
    assert told["differences"][0]["place"] == "body $.order"
    assert told["cause"] == {
        "place": "body $.order",
        "recorded": {"seq": 2, "tape_seq": 1, "place": "body $.orders[0].id", "replaced": False},
        "asked": {"seq": 2, "tape_seq": 1, "place": "body $.orders[1].id", "replaced": False},
    }
    assert told["rule"] is None  # a value that an answer has brought is no noise
    assert told["note"] is None
    text = render_receipt(receipt)
    assert "the asked value came from body $.orders[1].id of the answer to seq 1" in text
    assert "body $.order" in render_divergences(receipt)
    listed = playhead("receipt", "tape@1", "--all", "--store", store_dir)
    assert listed.stdout.rstrip().endswith(render_divergences(receipt))


async def test_a_part_of_a_longer_text_is_traced(store_dir: Path) -> None:
    """A sentence that holds an id is no answer's; the id in it is."""
    chat = "POST /v1/chat/completions"
    calls = [
        Call(chat, {"messages": [{"role": "tool", "content": f"The order is {one}, new."}]})
        for one in (FIRST, SECOND)
    ]
    async with recorded(store_dir, [LIST, calls[0]], playback=REFUSE) as story:
        _, said = await story.play([LIST, calls[1]])
    cause = said.divergence["cause"]
    assert cause["asked"] == {
        "seq": 1,
        "tape_seq": 1,
        "place": "body $.orders[1].id",
        "replaced": False,
    }
    assert cause["recorded"]["place"] == "body $.orders[0].id"
    assert said.divergence["note"] is None


UUIDS = "0f4c81ab-77e0-4c2d-93b6-a1b2c3d4e5f6", "11111111-2222-4333-8444-555555555555"
TOKENS = "kT5dv7Qm2pZ9xAb3LrfW0yC1uN8h", "mR4cx8Wn3qY7zBd5KsgV2tD9vP6j"
BESIDE: dict[str, Callable[[str], Call]] = {
    "header": lambda one: Call("GET /o", headers={"x-order": f"v1-{one}"}),
    "query": lambda one: Call(f"GET /s?id=order_{one}"),
    "body": lambda one: Call("POST /s", {"text": f"order-{one}"}),
    "behind": lambda one: Call("POST /s", {"text": f"{one}_new"}),
    "path": lambda one: Call(f"GET /bot{one}/send"),
    "model": lambda one: Call("POST /v1/chat/completions", {"model": "m", "messages": [], "metadata": {"order": f"o-{one}"}}),
}  # fmt: skip


@pytest.mark.parametrize("values", [TOKENS, UUIDS])
@pytest.mark.parametrize("place", BESIDE)
async def test_a_value_with_something_written_before_it_is_traced(
    place: str, values: tuple[str, str], store_dir: Path
) -> None:
    """It is no noise: no rule is proposed, and no clock is named."""
    note = Call("GET /note", answer={"note": f"your handle is {values[0]}"})
    async with recorded(store_dir, [note, BESIDE[place](values[0])], playback=REFUSE) as story:
        _, said = await story.play([note, BESIDE[place](values[1])])
        await story.end()
    told = said.divergence
    assert told["cause"]["recorded"]["place"] == "body $.note"
    assert told["rule"] is None
    assert "clock" not in told["text"]


SHORT: list[tuple[Any, bool]] = [
    ({"a": "cust-2", "b": "cust-3"}, True),
    ({"a": "the cust-2 of it"}, False),
    ([{"a": "cust-2"}], True),
]


@pytest.mark.parametrize(("answer", "found"), SHORT)
async def test_a_short_value_is_traced_only_as_a_whole(
    answer: Any, found: bool, store_dir: Path
) -> None:
    """Six characters are enough where a document says just that."""
    first = Call("GET /customers", answer=answer)
    calls = [Call("POST /v1/mail", {"to": one}) for one in ("cust-1", "cust-2")]
    async with recorded(store_dir, [first, calls[0]], playback=REFUSE) as story:
        _, said = await story.play([first, calls[1]])
    cause = said.divergence["cause"]
    assert (cause is not None and cause["asked"] is not None) is found


async def test_a_short_value_of_two_answers_is_of_neither(store_dir: Path) -> None:
    """Either may be meant."""
    firsts = [Call(f"GET /customers/{n}", answer={"a": "cust-2"}) for n in "12"]
    calls = [Call("POST /v1/mail", {"to": one}) for one in ("cust-1", "cust-2")]
    async with recorded(store_dir, [*firsts, calls[0]], playback=REFUSE) as story:
        *_, said = await story.play([*firsts, calls[1]])
    assert said.divergence["cause"] is None


async def test_a_value_from_a_stub_is_traced_to_it(store_dir: Path) -> None:
    """It is not on the tape, so it has no seq there."""
    stub = Answer(201, (), json.dumps({"id": SECOND}).encode())
    rule = EffectRule(parse_match("POST http://127.0.0.1:*/v1/orders"), stub, on_miss="stub")
    new = Call("POST /v1/orders", {"item": 2})
    async with recorded(store_dir, [LIST, order(FIRST)], playback=REFUSE, effects=(rule,)) as story:
        _, made, said = await story.play([OTHER, new, order(SECOND)])
    assert made.status == 201
    assert said.divergence["cause"]["asked"] == {
        "seq": 2,
        "tape_seq": None,
        "place": "body $.id",
        "replaced": False,
    }


async def test_a_value_from_nowhere_has_no_cause(store_dir: Path) -> None:
    """Nothing is made up."""
    async with recorded(store_dir, [OTHER, order(FIRST)], playback=REFUSE) as story:
        _, said = await story.play([OTHER, order("ord-0000000001")])
    assert said.divergence["cause"] is None


ISSUED = "ghp_" + "kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eX"
"""A key of a known format."""


async def test_what_is_made_from_a_placeholder_names_redaction(store_dir: Path) -> None:
    """The agent was given another value than while recording: a rule that ignores the place would hide that."""
    made = Call("GET /made", answer={"key": ISSUED})

    def half(key: str) -> Call:
        return Call("POST /v1/halves", {"half": key[4:24]})

    async with recorded(store_dir, [made, half(ISSUED)], playback=REFUSE) as story:
        given = json.loads((await story.ask(made)).body)["key"]
        assert given != ISSUED
        told = (await story.ask(half(given))).divergence
        receipt = await story.end()
    assert told["replaced"] == ["body $.half"]
    assert told["cause"]["asked"] == {
        "seq": 1, "tape_seq": 1, "place": "body $.key", "replaced": True
    }  # fmt: skip
    assert told["rule"] is None
    assert "body $.half: redaction replaced a value" in told["text"]
    assert (receipt.answers_replaced, receipt.replaced) == (1, [1])
    assert receipt.to_json()["secrets_replaced"] == {
        "answers": 1,
        "seqs": [1],
        "unloadable_keys": [],
        "other_digests": [],
    }
    assert "answers with secrets replaced: 1 (seq 1)" in render_receipt(receipt)


DIGESTS: list[Callable[[bytes], str]] = [
    lambda key: hashlib.sha256(key).hexdigest(),
    lambda key: hashlib.md5(key).hexdigest().upper(),
    lambda key: base64.urlsafe_b64encode(hashlib.sha256(key).digest()).rstrip(b"=").decode(),
    lambda key: "sha512:" + hashlib.sha512(key).hexdigest(),
]


@pytest.mark.parametrize("digest", DIGESTS)
async def test_the_digest_of_a_placeholder_names_redaction(
    store_dir: Path, digest: Callable[[bytes], str]
) -> None:
    """What the agent computed of the value it was given is another one, and neither is in an answer."""
    made = Call("GET /made", answer={"key": ISSUED})

    def sum_of(key: str) -> Call:
        return Call("POST /v1/sums", {"sum": digest(key.encode())})

    async with recorded(store_dir, [made, sum_of(ISSUED)], playback=REFUSE) as story:
        given = json.loads((await story.ask(made)).body)["key"]
        told = (await story.ask(sum_of(given))).divergence
        other = (await story.ask(sum_of("something else"))).divergence
    assert told["replaced"] == ["body $.sum"]
    assert told["cause"]["asked"] == {"seq": 1, "tape_seq": 1, "place": "body $.key", "replaced": True}  # fmt: skip
    assert other["replaced"] == []


async def test_a_value_that_is_a_secret_on_one_side_names_redaction(store_dir: Path) -> None:
    """It counts as another value; of a place that only one side has, redaction is not the cause."""
    calls = [Call("POST /v1/notes", {"note": f"use {one}"}) for one in (ISSUED, "none")]
    async with recorded(store_dir, [calls[0]], playback=REFUSE) as story:
        (said,) = await story.play([calls[1]])
    told = said.divergence
    assert told["replaced"] == ["body $.note"]
    assert told["rule"] is None
    assert "in one of the two alone" in told["text"]


async def test_redaction_is_not_named_where_something_else_differs(store_dir: Path) -> None:
    """A secret that is the same in both, beside another difference; a place that is gone."""
    was = Call("POST /v1/notes", {"note": f"at 10:01 use {ISSUED}", "key": ISSUED})
    other = replace(was, body={"note": f"at 10:02 use {ISSUED}", "key": ISSUED})
    gone = replace(was, body={"note": was.body["note"]})
    async with recorded(store_dir, [was], playback=REFUSE) as story:
        said = await story.play([other, gone])
    assert [one.divergence["replaced"] for one in said] == [[], []]


async def test_no_secret_is_told(store_dir: Path) -> None:
    """Neither in a field nor in a query, nor through where it came from."""
    key = Call("GET /keys", answer={"other": "nothing"})
    call = Call(
        f"GET /things?api_key={SECRET}&page=1",
        headers={"Authorization": f"Bearer {SECRET}", "X-Api-Key": SECRET, "Cookie": f"a={SECRET}"},
    )
    changed = replace(call, what=call.what.replace("page=1", "page=2"))
    gone = replace(call, what="GET /things?page=3")
    async with recorded(store_dir, [key, call]) as story:
        said: list[Said] = await story.play([key, changed, gone])
        receipt = await story.end()
    assert [one.divergence["differences"][0]["place"] for one in said[1:]] == [
        "query page",
        "query api_key",
    ]
    everything = json.dumps(receipt.to_json()) + render_receipt(receipt) + str(said)
    assert SECRET not in everything
    assert len(said[1].divergence["url"]) <= 200


async def test_a_key_that_cannot_be_loaded_is_named(store_dir: Path) -> None:
    """Of RSA nothing is made up that loads; of an elliptic curve there is."""
    keys: list[rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey] = [
        rsa.generate_private_key(public_exponent=65537, key_size=1024),
        ec.generate_private_key(ec.SECP256R1()),
    ]
    calls = [Call(f"GET /keys/{at}", answer={"key": _pem(key)}) for at, key in enumerate(keys)]
    async with recorded(store_dir, calls, playback=REFUSE) as story:
        await story.play(calls)
        receipt = await story.end()
    assert receipt.to_json()["secrets_replaced"] == {"answers": 2, "seqs": [1, 2], "unloadable_keys": [1], "other_digests": []}  # fmt: skip
    assert "private key that cannot be loaded any more: seq 1" in render_receipt(receipt)


async def test_digests_of_a_replaced_body_are_named(store_dir: Path) -> None:
    """A client that checks them reads on, and the receipt says that they are other ones."""
    digest = base64.b64encode(hashlib.md5(ISSUED.encode()).digest()).decode()
    call = Call("GET /made", answer=ISSUED, answer_headers={"Content-MD5": digest})
    async with recorded(store_dir, [call], playback=REFUSE) as story:
        said = await story.ask(call)
        receipt = await story.end()
    assert said.body != ISSUED.encode()
    assert said.headers["content-md5"] == base64.b64encode(hashlib.md5(said.body).digest()).decode()
    assert receipt.to_json()["secrets_replaced"]["other_digests"] == [1]
    assert "digests of the body computed anew, or left out: seq 1" in render_receipt(receipt)


def _pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    forms = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, *forms).decode()
