"""What a store holds that reads like a secret."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from playhead.proxy.cli import main
from playhead.proxy.operations.verify import WITHOUT_DETECTORS
from playhead.store import Store
from playhead.tape.exchange import Request, Response
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import make_response
from playhead.tests.support.process import playhead
from playhead.tests.support.recordings import record_run
from playhead.timeline.checks.secrets import (
    detect_nothing,
    find_detectors,
    find_secrets,
    render_findings,
)

GITHUB = "ghp_kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eX"
HEADER = (b"content-type", b"application/json")


def ask(target: str = "/", body: bytes = b"", *headers: tuple[bytes, bytes]) -> Request:
    """Give a request as it came."""
    fields = (HEADER, *headers)
    return Request("POST", "https", "api.test", 443, target, "HTTP/1.1", fields, body)


PLANTED: list[tuple[str, Request, Response]] = [
    (
        "request.header.x-api-key",
        ask("/", b"", (b"x-api-key", b"abc123def456")),
        make_response(b""),
    ),
    ("request.query.access_token", ask("/?access_token=abc123def456"), make_response(b"")),
    (
        "request.target",
        ask("/hooks.slack.com/services/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"),
        make_response(b""),
    ),
    ("request.body", ask("/", b'{"password": "hunter2hunter2"}'), make_response(b"")),
    (
        "request.body",
        ask("/", b'{"m": "my slack: xoxb-684920157304-v7Qm2pZ9xAb3LrfW0yC1kT5d"}'),
        make_response(b""),
    ),
    ("response.body", ask(), make_response(f'{{"text": "use {GITHUB}"}}'.encode())),
    (
        "response.body",
        ask(),
        make_response(
            b'{"a": "AccountKey=lJzRc1YdHaAA2KCNJJ1tkYwF/+mKK6Ygw0NGe170Xu592euJv2wYUtBlV8z+qnlcNQSnIYVTkLWntUO1F8j8rQ=="}'
        ),
    ),
]


@pytest.mark.parametrize(("place", "request_", "response"), PLANTED)
def test_what_was_not_redacted_is_found(
    tmp_path: Path, place: str, request_: Request, response: Response
) -> None:
    """By run, seq and place; its value is not said."""
    with Store.open(tmp_path / "store") as store:
        run = record_run(store, "leaky", [(ask(), make_response(b"{}")), (request_, response)])
        found = list(
            find_secrets(store, [run], lambda: Redactor(b"k"), find_detectors() or detect_nothing)
        )
    places = {(one.run, one.seq, one.place) for one in found}
    assert ("leaky", 2, place) in places
    assert all(seq == 2 or name.startswith("event") for _, seq, name in places)
    text = render_findings(found, 1)
    assert not any(secret in text for secret in ("abc123", "hunter2", "xoxb-6", "ghp_", "lJzRc1"))


def test_what_was_redacted_is_no_finding(tmp_path: Path) -> None:
    """The same, each redacted before it was written."""
    redactor = Redactor(b"k" * 32)
    clean: list[Any] = []
    with Store.open(tmp_path / "store") as store:
        for _, request, response in PLANTED[:-1]:
            asked, _ = redactor.request(request)
            clean.append((asked, redactor.response(response)[0]))
        run = record_run(store, "clean", clean[2:])
        found = list(
            find_secrets(store, [run], lambda: Redactor(b"k"), find_detectors() or detect_nothing)
        )
    assert found == []


def test_the_command_says_where_and_ends_with_one(tmp_path: Path) -> None:
    """As text and as JSON."""
    folder = tmp_path / "store"
    with Store.open(folder) as store:
        record_run(
            store, "leaky", [(ask("/", b'{"api_key": "v7Qm2pZ9xAb3LrfW"}'), make_response(b""))]
        )
    done = playhead("verify", "--secrets", "leaky", "--store", folder)
    assert done.returncode == 1
    assert "leaky 1 request.body: key" in done.stdout
    assert "v7Qm2pZ9" not in done.stdout + done.stderr
    found = json.loads(playhead("verify", "--secrets", "--json", "--store", folder).stdout)
    assert found["runs"] == 1
    assert {"run": "leaky", "seq": 1, "place": "request.body", "kind": "key"} in found["found"]
    assert playhead("verify", "--store", folder).returncode == 0  # it is as it was recorded
    assert playhead("verify", "--secrets", "nobody", "--store", folder).returncode == 2


def test_without_detect_secrets_the_own_search_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says what was not done; the rest is as ever."""
    for name in ("detect_secrets", "detect_secrets.settings"):
        monkeypatch.setitem(sys.modules, name, None)
    folder = tmp_path / "store"
    with Store.open(folder) as store:
        body = b'{"api_key": "v7Qm2pZ9xAb3LrfW"}'
        record_run(store, "leaky", [(ask("/", body), make_response(b""))])
    with pytest.raises(SystemExit) as ended:
        main(["verify", "--secrets", "--store", str(folder)])
    assert ended.value.code == 1
    said = capsys.readouterr()
    assert "leaky 1 request.body: key" in said.out
    assert WITHOUT_DETECTORS in said.err
