"""Answers made up after recorded ones: what is asked comes back, what is made has a name of its own."""

import gzip
import json
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.exchange import RequestClass, Seq, VerdictKind
from playhead.tape.stubs.infer_json_schema import infer, is_valid
from playhead.tape.stubs.operation import operation
from playhead.tape.stubs.synthesize import Made, Model, imitate, is_model, rename
from playhead.tests.support.dialects import make_request
from playhead.tests.support.exchanges import make_exchange, make_response
from playhead.tests.support.exchanges import make_request as make_plain

URL = "https://pay.test/v1/refunds"
SEED = b"a request's fingerprint"
JSON = ((b"Content-Type", b"application/json"),)


def model(
    asked: Any, answer: Any, seq: int = 1, url: str = URL, headers: Any = JSON, **changes: Any
) -> Model:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    response = make_response(body, headers=headers, **changes)
    request = make_request(url, asked)
    kind = RequestClass.EFFECT
    return Model(Seq(seq), make_exchange(seq, kind=kind, request=request, response=response))


def told(made: Made) -> Any:
    return json.loads(made.body)


REFUND = {"charge": "ch_1007", "amount": 4900}
REFUNDED = {
    "id": "re_1Qx8",
    "object": "refund",
    "charge": "ch_1007",
    "amount": 4900,
    "created": 1_700_000_000,
    "status": "succeeded",
    "url": "/v1/refunds/re_1Qx8",
}


def test_what_is_asked_comes_back_and_what_is_made_has_another_name() -> None:
    """As from the service, but for what it alone could know."""
    made = imitate(
        [model(REFUND, REFUNDED)], make_request(URL, {"charge": "ch_9", "amount": 100}), SEED
    )
    found = told(made)
    assert found["id"] not in ("re_1Qx8", "")
    assert found == REFUNDED | {
        "id": found["id"],
        "charge": "ch_9",
        "amount": 100,
        "url": f"/v1/refunds/{found['id']}",
    }
    assert found["id"].startswith("re_")
    assert len(found["id"]) == len("re_1Qx8")
    assert (made.status, made.after, made.changed) == (200, (1,), True)


def test_the_same_request_gets_the_same_answer() -> None:
    """Byte by byte; another request names another thing."""
    asked = make_request(URL, {"charge": "ch_9", "amount": 100})
    one, other = (imitate([model(REFUND, REFUNDED)], asked, SEED) for _ in range(2))
    assert one == other
    assert told(imitate([model(REFUND, REFUNDED)], asked, b"another"))["id"] != told(one)["id"]


def test_several_answers_tell_an_echo_from_a_coincidence() -> None:
    """What is repeated in one answer by chance is not in the next."""
    models = [
        model({"qty": 1, "to": "a@b.example"}, {"id": "m_1a2b", "qty": 1, "page": 1, "rcpt": "a@b.example", "txn": "t_99x1"}),
        model({"qty": 7, "to": "c@d.example"}, {"id": "m_3c4d", "qty": 7, "page": 1, "rcpt": "c@d.example", "txn": "t_77y2"}, 2),
    ]  # fmt: skip
    found = told(imitate(models, make_request(URL, {"qty": 3, "to": "e@f.example"}), SEED))
    assert (found["qty"], found["page"], found["rcpt"]) == (3, 1, "e@f.example")
    # An id that differs from answer to answer is named anew too.
    assert found["txn"] not in ("t_99x1", "t_77y2")
    assert found["txn"].startswith("t_")


@pytest.mark.parametrize(
    ("asked", "answer", "now", "expected"),
    [
        # What all answers share, or stands for something else, stays.
        ({}, {"account": "acct_1x2y"}, {}, {"account": "acct_1x2y"}),
        ({}, {"api_key_id": "k_1x2y"}, {}, {"api_key_id": "k_1x2y"}),
        ({}, {"created": "2024-01-02T03:04:05Z"}, {}, {"created": "2024-01-02T03:04:05Z"}),
        # What is not asked now stays as recorded.
        ({"amount": 5}, {"amount": 5}, {}, {"amount": 5}),
        # A type that no answer had is not put in.
        ({"amount": 5}, {"amount": 5}, {"amount": None}, {"amount": 5}),
        ({"amount": 5}, {"amount": 5}, {"amount": "12"}, {"amount": 12}),
        # Whole parts come back, of any length.
        ({"items": [1, 2]}, {"items": [1, 2]}, {"items": [3]}, {"items": [3]}),
        # Inside texts too.
        ({"to": "ann@a.example"}, {"text": "sent to ann@a.example."}, {"to": "bob@b.example"}, {"text": "sent to bob@b.example."}),
        # JSON-RPC's id is the client's.
        ({"jsonrpc": "2.0", "id": 1, "method": "m"}, {"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": "x9", "method": "m"}, {"jsonrpc": "2.0", "id": "x9", "result": {}}),
        # A tool's result is JSON in a text.
        ({"amount": 5}, {"text": '{"amount": 5, "ok": true}'}, {"amount": 7}, {"text": '{"amount": 7, "ok": true}'}),
        ({"amount": 5}, {"text": '{"ok":true,"amount":5}', "more": '{ "ok": 1 }'}, {"amount": 7}, {"text": '{"ok":true,"amount":7}', "more": '{ "ok": 1 }'}),
        ({"amount": 5}, {"text": "{no json}"}, {"amount": 7}, {"text": "{no json}"}),
        ([], [], [], []),
    ],
)  # fmt: skip
def test_what_stands_in_an_answer(asked: Any, answer: Any, now: Any, expected: Any) -> None:
    """With one recorded answer."""
    assert told(imitate([model(asked, answer)], make_request(URL, now), SEED)) == expected


def test_the_path_and_the_form_are_part_of_what_is_asked() -> None:
    """An id in the URL comes back as a number, and so does a form's amount."""
    url = "https://crm.test/customers/{}/notes"
    form = {"content-type": "application/x-www-form-urlencoded"}
    recorded = make_request(url.format(42), b"amount=4900&to=x", form)
    answer = json.dumps({"customer_id": 42, "amount": 4900}).encode()
    exchange = make_exchange(
        1, kind=RequestClass.EFFECT, request=recorded, response=make_response(answer)
    )
    asked = make_request(url.format(57), b"amount=10&to=x", form)
    assert told(imitate([Model(Seq(1), exchange)], asked, SEED)) == {
        "customer_id": 57,
        "amount": 10,
    }


def test_what_is_true_of_one_answer_alone_is_left_out() -> None:
    """Cookies and tags; a location names the new thing; a coding is undone."""
    fields = (
        *JSON,
        (b"Location", b"/v1/refunds/re_1Qx8"),
        (b"Set-Cookie", b"s=1"),
        (b"ETag", b'"1"'),
        (b"Content-Encoding", b"gzip"),
        (b"X-Version", b"7"),
    )
    body = gzip.compress(json.dumps(REFUNDED).encode())
    made = imitate(
        [model(REFUND, body, headers=fields)], make_request(URL, {**REFUND, "amount": 1}), SEED
    )
    name = told(made)["id"].encode()
    assert made.headers == (
        *JSON,
        (b"Location", b"/v1/refunds/" + name),
        (b"X-Version", b"7"),
    )


@pytest.mark.parametrize(
    "body", [b"done", b"", b"{broken", b'{"a": NaN}', b"\xff\x00", b"[" * 5000]
)
def test_what_is_no_json_is_given_as_recorded(body: bytes) -> None:
    """Whole."""
    made = imitate([model(REFUND, body)], make_request(URL, {"charge": "ch_9"}), SEED)
    assert (made.body, made.changed) == (body, False)


def test_what_is_large_is_given_as_recorded() -> None:
    """So that the work is bounded."""
    body = json.dumps({"amount": 5, "items": ["x"] * 20_000}).encode()
    made = imitate([model({"amount": 5}, body)], make_request(URL, {"amount": 7}), SEED)
    assert (made.body, made.changed) == (body, False)


def test_an_event_stream_of_json_rpc_has_the_id_of_now() -> None:
    """As MCP servers answer."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "pay"}}
    body = b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'
    events = ((b"content-type", b"text/event-stream"),)
    made = imitate([model(call, body, headers=events)], make_request(URL, call | {"id": 44}), SEED)
    assert made.body == body.replace(b'"id":1', b'"id":44')


@pytest.mark.parametrize(
    ("changes", "url"),
    [
        ({"response": None}, URL),
        ({"response": make_response(b"{}", status=402)}, URL),
        ({"response": make_response(b"{}", status=503)}, URL),
        ({"response": make_response(b"{}", complete=False)}, URL),
        ({"verdict": VerdictKind.REFUSED}, URL),
        ({"verdict": VerdictKind.STUBBED}, URL),
        ({"kind": RequestClass.READ}, URL),
        ({}, "https://other.test/v1/refunds"),
        ({}, "http://pay.test/v1/refunds"),
        ({}, "https://pay.test:8443/v1/refunds"),
    ],
)
def test_what_failed_or_is_elsewhere_is_no_model(changes: Any, url: str) -> None:
    """Nor what was made up."""
    asked = make_request(URL, REFUND)
    told = {"kind": RequestClass.EFFECT, "request": make_request(url, REFUND)} | changes
    assert not is_model(make_exchange(1, **told), asked)
    assert is_model(make_exchange(1, kind=RequestClass.EFFECT, request=asked), asked)


_TWO = "mutation Pay { pay } mutation Mail { mail }"


def _persisted(name: str, digest: str, **variables: Any) -> dict[str, Any]:
    persisted = {"version": 1, "sha256Hash": digest}
    extensions = {"persistedQuery": persisted}
    return {"operationName": name, "variables": variables, "extensions": extensions}


def _hashed(digest: str) -> str:
    return quote(json.dumps({"persistedQuery": {"version": 1, "sha256Hash": digest}}))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "pay"}}, {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "mail"}}, False),
        ({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "pay", "x": 1}}, {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "pay"}}, True),
        ({"query": "mutation Pay { pay }"}, {"query": "mutation Mail { mail }"}, False),
        ({"query": "mutation Pay { pay }"}, {"query": "mutation Pay { pay }", "variables": {}}, True),
        # the document counts beside its name, its layout does not
        ({"query": "mutation Pay { pay { id } }", "operationName": "Pay"}, {"query": "mutation Pay { pay(twice: true) { id } }", "operationName": "Pay"}, False),
        ({"query": "mutation Pay { pay { id } }"}, {"query": "mutation Pay {\n  pay {\n id # the id\n } }", "variables": {"a": 1}}, True),
        # several operations in a document: the name says which is executed
        ({"query": _TWO, "operationName": "Pay"}, {"query": _TWO, "operationName": "Mail"}, False),
        ({"query": _TWO, "operationName": "Pay"}, {"query": _TWO}, False),
        # persisted queries, by name and hash
        (_persisted("Pay", "a1"), _persisted("Pay", "a1", amount=2), True),
        (_persisted("Pay", "a1"), _persisted("Pay", "b2"), False),
        (_persisted("Pay", "a1"), _persisted("Mail", "a1"), False),
        ({"documentId": "sha256:a1", "variables": {}}, {"documentId": "sha256:b2", "variables": {}}, False),
        ({"doc_id": "17", "variables": "{}"}, {"doc_id": "18", "variables": "{}"}, False),
        # batches: each, in order
        ([_persisted("Pay", "a1"), _persisted("Mail", "b2")], [_persisted("Pay", "a1", amount=2), _persisted("Mail", "b2")], True),
        ([_persisted("Pay", "a1"), _persisted("Mail", "b2")], [_persisted("Mail", "b2"), _persisted("Pay", "a1")], False),
        ([_persisted("Pay", "a1")], [_persisted("Pay", "a1"), _persisted("Pay", "a1")], False),
        ([{"jsonrpc": "2.0", "id": 1, "method": "pay"}], [{"jsonrpc": "2.0", "id": 2, "method": "mail"}], False),
        # what is searched for is no operation
        ({"query": "refunds of today"}, {"query": "refunds of yesterday"}, True),
        ({"amount": 1}, {"amount": 2}, True),
    ],
)  # fmt: skip
def test_another_operation_at_the_same_place_is_another_deed(
    one: Any, other: Any, same: bool
) -> None:
    """Protocols that send everything to one URL say in the body what is done."""
    asked = (operation(make_request(URL, body)) for body in (one, other))
    assert (next(asked) == next(asked)) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("query=mutation+Pay{pay}&variables={}", "query=mutation+Pay+{+pay+}&variables={%22a%22:1}", True),
        ("query=mutation+Pay{pay}", "query=mutation+Mail{mail}", False),
        (f"operationName=Pay&extensions={_hashed('a1')}", f"operationName=Pay&extensions={_hashed('a1')}&variables={{}}", True),
        (f"operationName=Pay&extensions={_hashed('a1')}", f"operationName=Pay&extensions={_hashed('b2')}", False),
        (f"operationName=Pay&extensions={_hashed('a1')}", f"operationName=Mail&extensions={_hashed('a1')}", False),
        ("Action=RunInstances", "Action=TerminateInstances", False),
    ],
)  # fmt: skip
def test_a_query_string_or_form_names_an_operation(one: str, other: str, *, same: bool) -> None:
    """By GET in the URL, by POST in a form."""
    urls = (operation(make_plain(f"GET https://api.test/graphql?{text}")) for text in (one, other))
    assert (next(urls) == next(urls)) is same
    kind = ((b"content-type", b"application/x-www-form-urlencoded"),)
    forms = (
        operation(replace(make_plain("POST https://api.test/graphql", text.encode()), headers=kind))
        for text in (one, other)
    )
    assert (next(forms) == next(forms)) is same


@given(st.from_regex(r"[a-z]{0,4}_?[A-Za-z0-9]{4,40}", fullmatch=True), st.binary(max_size=8))
def test_another_name_has_the_same_form(name: str, seed: bytes) -> None:
    """Its length, its prefix, and letters where letters were, hexadecimal digits aside."""
    new = rename(name, seed)
    assert isinstance(new, str)
    assert len(new) == len(name)
    assert new.rpartition("_")[0] == name.rpartition("_")[0]
    assert new == rename(name, seed)


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=12)
    | st.sampled_from(["re_1a2b3c", "ch_77x88y", "550e8400-e29b-41d4-a716-446655440000", '{"id": "re_1a2b3c"}', '{"x": {"id": 1}}']),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(["id", "amount", "charge", "items", "x"]), inner, max_size=4),
)  # fmt: skip
OBJECTS = st.dictionaries(
    st.sampled_from(["id", "amount", "charge", "items", "x"]), JSONS, max_size=5
)


@given(st.lists(st.tuples(OBJECTS, OBJECTS), min_size=1, max_size=4), OBJECTS)
def test_what_is_made_up_is_valid_against_what_was_recorded(
    recorded: list[tuple[Any, Any]], asked: Any
) -> None:
    """Whatever was asked and answered."""
    models = [model(ask, answer, seq) for seq, (ask, answer) in enumerate(recorded, 1)]
    made = imitate(models, make_request(URL, asked), SEED)
    assert is_valid(told(made), infer([answer for _, answer in recorded]))
