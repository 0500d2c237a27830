"""The CA: made once, kept private, published whole, and explained when it cannot be used."""

import contextlib
import os
import ssl
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from playhead.proxy.errors import EngineError
from playhead.proxy.trust.ca import CertificateAuthority, certificate_store, open_ca
from playhead.proxy.trust.client_root_certificates import certificates_in
from playhead.tests.support.certificates import Certificates

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def open_in(tmp_path: Path, **options: object) -> CertificateAuthority:
    given = {"environ": {}, "now": NOW, **options}
    return open_ca(tmp_path / "store", tmp_path / "ca", **given)  # type: ignore[arg-type]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def foreign_root(name: str = "somebody else") -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(NOW)
        .not_valid_after(NOW + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM)


def test_first_use_makes_a_ca_that_later_uses_keep(tmp_path: Path) -> None:
    """Two starts are one CA."""
    first, second = open_in(tmp_path), open_in(tmp_path)
    assert first.certificate == second.certificate
    assert first.key.public_key() == second.key.public_key()


def test_private_key_is_closed_to_others_and_stands_nowhere_else(tmp_path: Path) -> None:
    """Only the private folder holds a key; nothing is left over beside it."""
    old = os.umask(0)
    try:
        ca = open_in(tmp_path)
    finally:
        os.umask(old)
    assert mode(ca.key_file) == 0o600
    assert mode(ca.key_file.parent) == 0o700
    assert [path.name for path in ca.key_file.parent.iterdir()] == ["ca.pem"]
    public = sorted(path.name for path in (tmp_path / "ca").iterdir())
    assert public == ["playhead-ca-bundle.pem", "playhead-ca-cert.pem"]
    assert all(b"PRIVATE" not in path.read_bytes() for path in (tmp_path / "ca").iterdir())
    assert "key=" not in repr(ca)


def test_certificate_is_that_of_a_strict_ca(tmp_path: Path) -> None:
    """A year, critical constraints, key usage, key identifier, own name."""
    ca = open_in(tmp_path)
    extension = ca.certificate.extensions.get_extension_for_class
    assert ca.name.startswith("Playhead CA ")
    assert isinstance(ca.key, ec.EllipticCurvePrivateKey)
    assert isinstance(ca.key.curve, ec.SECP256R1)
    assert extension(x509.BasicConstraints).critical
    assert extension(x509.BasicConstraints).value == x509.BasicConstraints(ca=True, path_length=0)
    assert extension(x509.KeyUsage).value.key_cert_sign
    assert extension(x509.SubjectKeyIdentifier).value.digest
    lifetime = ca.certificate.not_valid_after_utc - ca.certificate.not_valid_before_utc
    assert lifetime == timedelta(days=365)
    assert len(ca.fingerprint.split(":")) == 32


def test_processes_that_start_at_once_share_one_ca(tmp_path: Path) -> None:
    """Whoever is first makes it, the others read it."""
    code = (
        "import sys; from pathlib import Path; from playhead.proxy.trust.ca import open_ca\n"
        "sys.stdin.read(); p = Path(sys.argv[1])\n"
        "print(open_ca(p, p / 'ca', environ={}).fingerprint)"
    )
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for child in children:
        assert child.stdin
        child.stdin.close()
    answers = set()
    for child in children:
        assert child.stdout
        answers.add(child.stdout.read())
        child.stdout.close()
        assert child.wait() == 0
    assert len(answers) == 1
    assert [path.name for path in (tmp_path / "private").iterdir()] == ["ca.pem"]


def test_file_system_without_hard_links_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some network and container mounts refuse os.link."""

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert open_in(tmp_path).certificate == open_in(tmp_path).certificate


def test_loose_key_is_closed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A key that others could read is closed, and that is said."""
    ca = open_in(tmp_path)
    ca.key_file.chmod(0o644)
    open_in(tmp_path)
    assert mode(ca.key_file) == 0o600
    assert "open to other users" in caplog.text


def test_loose_key_that_cannot_be_closed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may belong to somebody else, or lie on a read-only disk."""
    open_in(tmp_path).key_file.chmod(0o640)

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "fchmod", refuse)
    with pytest.raises(EngineError, match="open to other users") as caught:
        open_in(tmp_path)
    assert "chmod 600" in caught.value.hint


def _pem(key: PrivateKeyTypes, certificate: bytes) -> bytes:
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return private + certificate


def _broken(kind: str, ca: CertificateAuthority) -> bytes:
    certificate = ca.certificate.public_bytes(serialization.Encoding.PEM)
    match kind:
        case "empty":
            return b""
        case "garbage":
            return b"\xff\x00 not a CA \x1b[31m"
        case "no certificate":
            return _pem(ca.key, b"")
        case "no key":
            return certificate
        case "truncated":
            return ca.key_file.read_bytes()[:-100]
        case "other key":
            return _pem(ec.generate_private_key(ec.SECP256R1()), certificate)
        case "unusable key":
            return _pem(ed25519.Ed25519PrivateKey.generate(), certificate)
        case "not a ca":
            return _pem(ca.key, foreign_root())
        case _:
            return (
                ca.key.private_bytes(
                    serialization.Encoding.PEM,
                    serialization.PrivateFormat.PKCS8,
                    serialization.BestAvailableEncryption(b"secret"),
                )
                + certificate
            )


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("empty", "does not hold"),
        ("garbage", "does not hold"),
        ("no certificate", "does not hold"),
        ("no key", "does not hold"),
        ("truncated", "does not hold"),
        ("other key", "do not match"),
        ("unusable key", "neither EC nor RSA"),
        ("not a ca", "does not hold"),
        ("encrypted", "encrypted"),
    ],
)
def test_broken_ca_is_one_sentence_and_a_hint(tmp_path: Path, kind: str, says: str) -> None:
    """Never a traceback, never a new CA in place of one that somebody trusts."""
    ca = open_in(tmp_path)
    broken = _broken(kind, ca)
    ca.key_file.write_bytes(broken)
    with pytest.raises(EngineError, match=says) as caught:
        open_in(tmp_path)
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    assert ca.key_file.read_bytes() == broken


@pytest.mark.parametrize(
    ("later", "says"),
    [
        (timedelta(days=-3), "valid only from"),
    ],
)
def test_ca_out_of_its_time_is_refused(tmp_path: Path, later: timedelta, says: str) -> None:
    """It would fail in every client with a message of its own; one that has expired is renewed (test_rotate_and_remove_ca.py)."""
    open_in(tmp_path)
    with pytest.raises(EngineError, match=says):
        open_in(tmp_path, now=NOW + later)


@pytest.mark.parametrize("place", ["store", "ca", "store/private/ca.pem"])
def test_place_that_cannot_be_used_is_named(tmp_path: Path, place: str) -> None:
    """A file where a folder has to be, a folder where a file has to be."""
    if place.endswith(".pem"):
        (tmp_path / place).mkdir(parents=True)
    else:
        (tmp_path / place).write_text("in the way")
    with pytest.raises(EngineError, match=r"cannot (make|read|write)") as caught:
        open_in(tmp_path)
    assert str(tmp_path / place) in str(caught.value)
    assert caught.value.hint


def test_bundle_is_the_roots_before_and_ours(tmp_path: Path) -> None:
    """The system's roots where the person named none, the upstream's, ours last."""
    upstream = tmp_path / "upstream.pem"
    upstream.write_bytes(foreign_root())
    ca = open_in(tmp_path, upstream_ca=upstream)
    blocks = certificates_in(ca.bundle_file.read_bytes())
    assert len(blocks) > 20
    assert blocks[-2:] == [
        *certificates_in(upstream.read_bytes()),
        *certificates_in(ca.certificate_file.read_bytes()),
    ]
    ssl.create_default_context(cafile=str(ca.bundle_file))


def test_bundle_is_rewritten_only_when_it_changes(tmp_path: Path) -> None:
    """A second start touches no public file; a changed root does."""
    named = tmp_path / "named.pem"
    named.write_bytes(foreign_root("one"))
    ca = open_in(tmp_path, environ={"SSL_CERT_FILE": str(named)})
    before = ca.bundle_file.stat()
    open_in(tmp_path, environ={"SSL_CERT_FILE": str(named)})
    assert ca.bundle_file.stat().st_ino == before.st_ino
    assert ca.bundle_file.stat().st_mtime_ns == before.st_mtime_ns
    named.write_bytes(foreign_root("two"))
    open_in(tmp_path, environ={"SSL_CERT_FILE": str(named)})
    assert certificates_in(named.read_bytes())[0] in ca.bundle_file.read_bytes()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot read the upstream roots"),
        (b"nothing here", "hold no certificate"),
        (
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "hold a broken certificate",
        ),
    ],
)
def test_bad_upstream_roots_are_refused(tmp_path: Path, content: bytes | None, says: str) -> None:
    """What the person named has to be usable."""
    upstream = tmp_path / "upstream.pem"
    if content is not None:
        upstream.write_bytes(content)
    with pytest.raises(EngineError, match=says):
        open_in(tmp_path, upstream_ca=upstream)


def test_no_other_command_changes_whom_a_running_proxy_trusts(
    tmp_path: Path, certificates: Certificates
) -> None:
    """`env`, `ca` and `doctor` write the bundle anew, perhaps without the roots that the proxy was given."""
    store, public = tmp_path / "store", tmp_path / "store" / "ca"
    ca = open_ca(store, public, upstream_ca=certificates.root, environ={})
    trusted = ca.write_roots()
    (given,) = certificates_in(certificates.root.read_bytes())
    assert given in trusted.read_bytes()
    other = open_ca(store, public, environ={})
    assert given not in other.bundle_file.read_bytes()
    assert given in trusted.read_bytes()
    assert other.write_roots() != trusted
    assert trusted.parent == ca.key_file.parent
    assert trusted.stat().st_mode & 0o777 == 0o600


def test_leaf_certificates_have_a_key_of_their_own(tmp_path: Path) -> None:
    """The CA's key is never a TLS server's; one leaf key serves all names, one certificate a name."""
    ca = open_in(tmp_path)
    store = certificate_store(ca)
    first = store.get_cert("a.example", [x509.DNSName("a.example")])
    second = store.get_cert("b.example", [x509.DNSName("b.example")])
    assert first.privatekey is second.privatekey
    assert first.privatekey.public_key() == first.cert.public_key()
    assert first.cert.public_key() != ca.certificate.public_key()
    first.cert.to_cryptography().verify_directly_issued_by(ca.certificate)
    assert store.get_cert("a.example", [x509.DNSName("a.example")]) is first
    assert not list(tmp_path.rglob("mitmproxy*"))
    assert not list(tmp_path.rglob("*dhparam*"))


def test_leaf_is_trusted_by_a_strict_client(tmp_path: Path) -> None:
    """A handshake in memory, verified with the public certificate alone and OpenSSL's strict rules."""
    ca = open_in(tmp_path, now=datetime.now(UTC))
    entry = certificate_store(ca).get_cert("a.example", [x509.DNSName("a.example")])
    chain = tmp_path / "leaf.pem"
    chain.write_bytes(_pem(entry.privatekey, entry.cert.to_pem()))
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(chain)
    client_side = ssl.create_default_context(cafile=str(ca.certificate_file))
    client_side.verify_flags |= ssl.VERIFY_X509_STRICT
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_side.wrap_bio(to_client, to_server, server_hostname="a.example")
    server = server_side.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for end in (client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
    assert client.version() == "TLSv1.3"
