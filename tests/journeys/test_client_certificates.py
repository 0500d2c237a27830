"""What upstreams are shown and trusted by: client certificates (mutual TLS), and the roots of a company."""

import contextlib
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization

from playhead.config import (
    ClientCertificate,
    Config,
    ConfigError,
    LiveRule,
    Mode,
    loads,
    parse_match,
)
from playhead.proxy.engine.upstream import ClientCertificates
from playhead.proxy.errors import EngineError
from playhead.proxy.trust.ca import open_ca
from playhead.tests.support.certificates import Certificates, make_certificates, make_leaf
from playhead.tests.support.deck import Deck
from playhead.tests.support.origins import Origin
from playhead.tests.support.upstream_proxy_cases import CLIENT_CERTIFICATES, COMPANY_ROOTS
from playhead.tests.support.upstream_proxy_cases import ClientCertificate as Row
from playhead.tests.support.wire import Wire, tunnel


async def _who(request: web.Request) -> web.Response:
    assert request.transport is not None
    shown = request.transport.get_extra_info("peercert") or {}
    return web.Response(text=str(dict(pair[0] for pair in shown.get("subject", ()))))


@pytest.fixture
def mtls(certificates: Certificates) -> Iterator[Origin]:
    """An origin that says whose certificate it was shown, if any."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificates.root))
    context.load_cert_chain(certificates.chain)
    context.verify_mode = ssl.CERT_OPTIONAL
    with Origin({"/who": _who, "/live": _who}, certificates, context=context) as running:
        yield running


@pytest.fixture(scope="module")
def mine(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of a client, with its key in the same file."""
    path = tmp_path_factory.mktemp("mine") / "client.pem"
    return make_leaf(certificates, path, ("client-7",), ()).chain


def _ask(deck: Deck, origin: Origin, host: str, run: str, path: str = "/who") -> bytes:
    place = f"{host}:{origin.port}"
    with Wire(tunnel(deck.proxy, place, run, ca=deck.running.ca)) as wire:
        return wire.ask(f"GET {path} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode()).content


@pytest.mark.parametrize(
    "case", CLIENT_CERTIFICATES, ids=[case.rule for case in CLIENT_CERTIFICATES]
)
def test_an_upstream_is_shown_the_certificate_for_its_host(
    case: Row, mine: Path, mtls: Origin, tmp_path: Path, certificates: Certificates
) -> None:
    """One row per rule; its key is nowhere in the store."""
    text = (
        f"client_certificates: [{{hosts: {case.hosts}, cert: {mine}}}]\nstore: {tmp_path}/store\n"
    )
    config = loads(f"{text}upstream_ca: {certificates.root}\nmode: record\n")
    found = ClientCertificates(config.client_certificates).find(case.asked)
    assert (found is not None) is case.given
    if case.asked.endswith(".localhost"):
        return  # a name that not every machine can look up
    with Deck(config) as deck:
        said = _ask(deck, mtls, case.asked, "run")
        deck.end("run")
    assert (b"client-7" in said) is case.given
    key = b"".join(mine.read_bytes().split(b"\n")[1:3])
    assert not [
        file
        for file in (tmp_path / "store").rglob("*")
        if file.is_file() and key in file.read_bytes()
    ]


def test_in_playback_a_live_rule_shows_it_too(
    mine: Path, mtls: Origin, tmp_path: Path, certificates: Certificates
) -> None:
    """What it says is played without asking anybody."""
    config = Config(
        mode=Mode.RECORD,
        store=tmp_path / "store",
        upstream_ca=certificates.root,
        live=(LiveRule(parse_match(f"https://127.0.0.1:{mtls.port}/live"), "it is"),),
        client_certificates=(ClientCertificate(("127.0.0.1",), mine),),
    )
    with Deck(config) as deck:
        _ask(deck, mtls, "127.0.0.1", "run")
        deck.end("run")
        deck.play()
        assert b"client-7" in _ask(deck, mtls, "127.0.0.1", "run")
        assert mtls.requests == ["GET /who"]
        assert b"client-7" in _ask(deck, mtls, "127.0.0.1", "run", "/live")
        assert mtls.requests == ["GET /who", "GET /live"]


def test_the_other_checks_of_the_upstream_stay(
    mine: Path, tmp_path: Path, certificates: Certificates
) -> None:
    """Its name and its root are looked at as without a certificate of ours."""
    other = make_leaf(certificates, tmp_path / "other.pem", ("other.test",), ("127.0.0.9",))
    shown = (ClientCertificate(("*",), mine),)
    for number, (root, chain) in enumerate(((certificates.root, other), (None, certificates))):
        store = tmp_path / f"store-{number}"
        config = Config(mode=Mode.RECORD, store=store, upstream_ca=root, client_certificates=shown)
        with Deck(config) as deck, Origin({"/who": _who}, chain) as origin:
            with contextlib.suppress(OSError, ssl.SSLError):
                _ask(deck, origin, "127.0.0.1", "run")
            deck.end("run")
            assert [row["kind"] for row in deck.receipt("run").faults] == ["tls"]
        assert origin.requests == []


# ---- bad input ---------------------------------------------------------------------------------


def _key(pem: bytes) -> bytes:
    return pem[: pem.index(b"-----BEGIN CERTIFICATE")]


def _encrypted(pem: bytes) -> bytes:
    key = serialization.load_pem_private_key(pem, None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )


def test_a_certificate_that_cannot_be_used_is_named(
    mine: Path, tmp_path: Path, certificates: Certificates
) -> None:
    """With its file, before the proxy starts."""
    pem = mine.read_bytes()
    alone = tmp_path / "alone.pem"
    alone.write_bytes(pem[pem.index(b"-----BEGIN CERTIFICATE") :])
    key = tmp_path / "key.pem"
    locked = tmp_path / "locked.pem"
    locked.write_bytes(_encrypted(pem))
    broken = tmp_path / "broken.pem"
    broken.write_bytes(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    key.write_bytes(_key(pem))
    foreign = tmp_path / "foreign.pem"
    foreign.write_bytes(_key(certificates.chain.read_bytes()))
    table = [
        (tmp_path / "none.pem", None, "cannot read", "none.pem"),
        (key, None, "no certificate", "key.pem"),
        (broken, None, "broken", "broken.pem"),
        (alone, None, "no private key", "alone.pem"),
        (alone, tmp_path / "none.pem", "cannot read", "none.pem"),
        (alone, locked, "passphrase", "locked.pem"),
        (alone, foreign, "does not belong", "foreign.pem"),
    ]
    for cert, key_file, says, names in table:
        with pytest.raises(EngineError, match=says) as wrong:
            ClientCertificates([ClientCertificate(("*",), cert, key_file)])
        assert names in str(wrong.value)
        assert wrong.value.hint
    assert ClientCertificates([ClientCertificate(("*",), alone, key)]).find("a") is not None


@pytest.mark.parametrize("hosts", ["", "hosts: [],", "hosts: ['a*b'],", "hosts: ['https://a'],"])
def test_an_entry_without_a_host_is_a_fault_of_the_file(hosts: str) -> None:
    """As any other, with its place."""
    with pytest.raises(ConfigError, match="client_certificates") as wrong:
        loads(f"client_certificates: [{{{hosts} cert: a.pem}}]")
    assert "host" in str(wrong.value)


# ---- roots of a company ------------------------------------------------------------------------


@pytest.mark.parametrize("variable", COMPANY_ROOTS)
def test_a_root_that_a_variable_names_is_trusted_upstream(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them alone; what was trusted before stays trusted."""
    company = make_certificates(tmp_path / "company")
    named = company.root
    if variable == "SSL_CERT_DIR":
        named = tmp_path / "roots"
        named.mkdir()
        (named / "company.pem").write_bytes(company.root.read_bytes())
    before = open_ca(tmp_path / "store", tmp_path / "before", environ={}).roots
    after = open_ca(tmp_path / "store", tmp_path / "after", environ={variable: str(named)}).roots
    assert company.root.read_bytes().strip() in after
    if variable in ("NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR"):
        assert before.strip() in after or before.count(b"BEGIN") < after.count(b"BEGIN")
    monkeypatch.setenv(variable, str(named))
    with (
        Origin({"/who": _who}, company) as origin,
        Deck(Config(mode=Mode.RECORD, store=tmp_path / "own")) as deck,
    ):
        assert _ask(deck, origin, "127.0.0.1", "run") == b"{}"
        deck.end("run")
