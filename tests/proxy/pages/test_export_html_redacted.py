"""What a file of a run says is under the rules of now, whichever rule and place: as a recording under them would have it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from playhead.config import Config, loads
from playhead.proxy.pages.export_html import check_file, export_html, find_public_key
from playhead.proxy.trust.receipt_signature import BadReceipt, Signer, public_key, sign
from playhead.proxy.trust.redaction_and_receipt_keys import open_receipt_key
from playhead.store import RunInfo, Store
from playhead.tape.diff.divergence_types import Difference, Divergence, DivergenceKind
from playhead.tape.exchange import Exchange, RedactedText, RequestClass, Seq, VerdictKind
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.exchanges import (
    make_exchange,
    make_intent,
    make_record,
    make_request,
    make_response,
)
from playhead.tests.support.looking_back import write_store
from playhead.tests.support.stored import save_folder

_AT_NS = 1_700_000_000_000_000_000
_SECRETS = {
    "json": "jsonQ77X9ABCdef",
    "query": "queryQ77X9ABCdef",
    "header": "headerQ77X9ABCdef",
    "answer": "answerQ77X9ABCdef",
    "form": "formQ77X9ABCdef",
    "path": "pathQ77X9ABCdef",
    "pattern": "tok_Q77X9ABCdef",
    "pii": "joe.q77x9abc@example.com",
}
_RULES = """redact:
  - {json: pin}
  - {query: customer}
  - {header: x-my-note}
  - {header: x-answer}
  - {form: ssn}
  - {path: "^/hooks/([^/]+)"}
  - {pattern: 'tok_[A-Za-z0-9]+'}
  - {pii: [email]}
"""


def _exchanges() -> Iterator[Exchange]:
    target = f"/hooks/{_SECRETS['path']}/x?customer={_SECRETS['query']}"
    body = json.dumps(
        {"pin": _SECRETS["json"], "mail": _SECRETS["pii"], "say": f"use {_SECRETS['pattern']}"}
    )
    request = make_request(f"POST https://api.test{target}", body.encode())
    note = (b"x-my-note", _SECRETS["header"].encode())
    kind = (b"content-type", b"application/json")
    request = replace(request, headers=(*request.headers, note, kind))
    answer = make_response(
        f'{{"ok":"{_SECRETS["json"]}"}}'.encode(),
        headers=(
            (b"content-type", b"application/json"),
            (b"x-answer", _SECRETS["answer"].encode()),
        ),
    )
    effect = make_exchange(kind=RequestClass.EFFECT, response=answer)
    yield replace(effect, request=request)
    form = make_request("POST https://api.test/f", f"ssn={_SECRETS['form']}&a=1".encode())
    coded = (b"content-type", b"application/x-www-form-urlencoded")
    form = replace(form, headers=(*form.headers, coded))
    second = make_exchange(2, kind=RequestClass.EFFECT)
    yield replace(second, request=form)


async def _write(store: Store) -> None:
    agent = RedactedText(f"agent --mail {_SECRETS['pii']}")
    run = await store.runs.create("old", mode="record", at_ns=_AT_NS, agent=agent)
    for exchange in _exchanges():
        store.events.append(run.number, make_intent(exchange))
        await store.exchanges.save(run.number, partial(make_record, exchange))
    save_folder(store, run, "old")
    run = await store.runs.seal(run, reason=f"it said {_SECRETS['pattern']}", at_ns=_AT_NS + 1)
    played = await store.runs.create("old", mode="playback", at_ns=_AT_NS + 2, parent=run)
    first = next(_exchanges())
    for event in _playback_events(first):
        store.events.append(played.number, event)
    await store.runs.seal(played, reason="the command ended with 1", at_ns=_AT_NS + 3)


def _playback_events(exchange: Exchange) -> Iterator[Event]:
    told: dict[str, Any] = {
        "seq": 1,
        "method": "POST",
        "url": exchange.request.url,
        "request_class": "effect",
        "verdict": VerdictKind.REFUSED.value,
        "reason": f"not {_SECRETS['query']}",
        "fingerprint": exchange.fingerprint,
        "key": None,
    }
    yield Event(EventKind.VERDICT, _AT_NS + 2, told)
    differences = (Difference("body $.pin", _SECRETS["json"], "other"),)
    diverged = Divergence(
        DivergenceKind.CHANGED,
        Seq(1),
        "POST",
        exchange.request.url,
        Seq(1),
        differences,
        f"it has {_SECRETS['path']}",
    )
    yield Event(EventKind.DIVERGED, _AT_NS + 2, {"seq": 1, "divergence": diverged.to_json()})


def _export(config: Config, run: str) -> tuple[bytes, str]:
    """Give a file, and the hash that ends the log of the run."""
    pieces: list[bytes] = []
    with Store.open(config.store, readonly=True) as store:
        info: RunInfo = store.runs.get(run)
        export_html(config)(store, info, pieces.append, lambda *_: None)
        *_, last = store.events.raw(info)
    return b"".join(pieces), last[:16].hex()


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    folder = write_store(tmp_path_factory.mktemp("old") / "store", _write)
    return loads(f"store: {folder}\n{_RULES}")


def test_without_rules_the_file_has_what_was_recorded(config: Config) -> None:
    """So the test below looks at something."""
    data, _ = _export(Config(store=config.store), "old")
    assert [name for name, secret in _SECRETS.items() if secret.encode() not in data] == []


@pytest.mark.parametrize("run", ["old", "old@1"])
def test_each_rule_holds_in_each_place(config: Config, run: str) -> None:
    """Steps, URLs, fields, bodies, divergences, the command, and the receipt that is signed; the run stays as it is."""
    before = _files(config.store)
    data, chain = _export(config, run)
    assert [name for name, secret in _SECRETS.items() if secret.encode() in data] == []
    receipt = _receipt(config, data)
    assert receipt["run"] == run
    assert receipt["chain"] == chain
    plain = _receipt(config, _export(Config(store=config.store), run)[0])
    told = ("run", "parent", "exchanges", "faithful", "verdict", "status", "rewritten")
    assert [receipt.get(one) for one in told] == [plain.get(one) for one in told]
    assert list(receipt) == list(plain)
    assert _files(config.store) == before


def _receipt(config: Config, data: bytes) -> dict[str, Any]:
    return check_file(data, Signer(bytes.fromhex(find_public_key(config))), "file.html")


def _files(store: Path) -> dict[str, int]:
    return {
        str(path): path.stat().st_size
        for path in store.rglob("*")
        if path.is_file() and "lock" not in path.name
    }


def test_a_run_that_no_rule_changes_is_read_where_it_is(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a copy."""
    monkeypatch.setattr("playhead.proxy.pages.export_html.copy_redacted", None)
    data, chain = _export(Config(store=config.store), "old@1")
    assert chain.encode() in data


@pytest.mark.parametrize("name", ["refund.html", "refund.HTM", "refund.svg", "refund.xhtml"])
def test_a_receipt_is_no_page(config: Config, name: str) -> None:
    """A browser would read the texts in it as markup."""
    seed = open_receipt_key(config.store)
    signer = Signer(public_key(seed))
    receipt = json.dumps(sign({"run": "r", "said": "<script>"}, seed)).encode()
    assert check_file(receipt, signer, "receipt.json")["run"] == "r"
    assert check_file(receipt, signer, "receipt")["run"] == "r"
    with pytest.raises(BadReceipt, match=r"expected FILE\.json"):
        check_file(receipt, signer, name)
    for spelled in (b"\xef\xbb\xbf" + receipt, receipt.decode().encode("utf-16")):
        with pytest.raises(BadReceipt):
            check_file(spelled, signer, "receipt.json")
