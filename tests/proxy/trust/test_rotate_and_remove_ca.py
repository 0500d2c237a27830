"""The CA's life: a year, renewed in time under the same key, rotated and removed on demand, and best trusted nowhere else."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from playhead.proxy.cli import main
from playhead.proxy.errors import EngineError
from playhead.proxy.trust import client_root_certificates
from playhead.proxy.trust.ca import CertificateAuthority, certificate_store, open_ca
from playhead.proxy.trust.rotate_and_remove_ca import remove_ca, rotate_ca

NOW = datetime(2030, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=365)


def open_in(folder: Path, now: datetime = NOW) -> CertificateAuthority:
    return open_ca(folder / "store", folder / "ca", environ={}, now=now)


def is_trusted(leaf: x509.Certificate, root: CertificateAuthority, at: datetime) -> bool:
    """Say whether a client that trusts the root alone takes a server's certificate at a time."""
    verifier = x509.verification.PolicyBuilder().store(x509.verification.Store([root.certificate]))
    try:
        verifier.time(at).build_server_verifier(x509.DNSName("a.example")).verify(leaf, [])
    except x509.verification.VerificationError:
        return False
    return True


def leaf_of(ca: CertificateAuthority) -> x509.Certificate:
    return (
        certificate_store(ca)
        .get_cert("a.example", [x509.DNSName("a.example")])
        .cert.to_cryptography()
    )


def lifetime(ca: CertificateAuthority) -> timedelta:
    return ca.certificate.not_valid_after_utc - ca.certificate.not_valid_before_utc


def test_ca_is_valid_for_a_year(tmp_path: Path) -> None:
    """No longer than clients allow the certificates of servers."""
    assert lifetime(open_in(tmp_path)) == YEAR


@pytest.mark.parametrize(
    ("later", "renewed"),
    [
        (timedelta(days=300), False),
        (timedelta(days=340), True),  # in its last month
        (timedelta(days=400), True),  # it has expired: nobody used it for a while
        (timedelta(days=4000), True),
    ],
)
def test_ca_is_renewed_in_time(tmp_path: Path, later: timedelta, renewed: bool) -> None:
    """Under the same key and name."""
    first = open_in(tmp_path)
    second = open_in(tmp_path, NOW + later)
    assert (second.certificate != first.certificate) == renewed
    assert second.key.public_key() == first.key.public_key()
    assert second.certificate.subject == first.certificate.subject
    assert second.certificate.not_valid_after_utc - (NOW + later) > timedelta(days=30)
    assert second.key_file.stat().st_mode & 0o777 == 0o600
    assert second.certificate == x509.load_pem_x509_certificate(
        second.certificate_file.read_bytes()
    )
    third = open_in(tmp_path, NOW + later)
    assert third.certificate == second.certificate


def test_clients_of_before_and_proxies_of_before_go_on(tmp_path: Path) -> None:
    """Who trusts the old certificate takes what the renewed CA signs, and the other way round."""
    now = datetime.now(UTC)
    old = open_in(tmp_path, now - timedelta(days=340))
    new = open_in(tmp_path, now)
    assert old.certificate != new.certificate
    assert is_trusted(leaf_of(new), old, now)
    assert is_trusted(leaf_of(old), new, now)
    ssl.create_default_context(cafile=str(new.bundle_file))


def test_ca_of_ten_years_becomes_one_of_a_year(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that an earlier version made."""
    with monkeypatch.context() as patched:
        patched.setattr("playhead.proxy.trust.ca.VALIDITY", timedelta(days=3652))
        first = open_in(tmp_path)
    assert lifetime(first) == timedelta(days=3652)
    second = open_in(tmp_path)
    assert lifetime(second) == YEAR
    assert second.key.public_key() == first.key.public_key()


def _put_foreign(path: Path, days: int) -> bytes:
    """Put somebody's own CA there."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Acme test CA")])
    made = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(NOW)
        .not_valid_after(NOW + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ) + made.public_bytes(serialization.Encoding.PEM)
    path.write_bytes(pem)
    return pem


def test_ca_of_somebody_else_is_left_as_it_is(tmp_path: Path) -> None:
    """Whatever its time; one that has expired is refused, as before."""
    file = open_in(tmp_path).key_file
    pem = _put_foreign(file, 3000)
    assert open_in(tmp_path, NOW + timedelta(days=2990)).name == "Acme test CA"
    assert file.read_bytes() == pem
    with pytest.raises(EngineError, match="expired on 2038-03-20") as refused:
        open_in(tmp_path, NOW + timedelta(days=3001))
    assert "playhead ca rotate" in refused.value.hint


def test_ca_that_cannot_be_written_is_used_while_it_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And refused after that, with the reason."""
    first = open_in(tmp_path)

    def refuse(path: Path, *_: object) -> bool:
        raise EngineError(f"cannot write {str(path)!r}: Read-only file system", "x")

    monkeypatch.setattr("playhead.proxy.trust.ca.write_public", refuse)
    with pytest.raises(EngineError, match="cannot write"):
        open_in(tmp_path, NOW + timedelta(days=400))
    monkeypatch.setattr(
        "playhead.proxy.trust.ca.write_public",
        lambda path, *rest: refuse(path) if path.name == "ca.pem" else False,
    )
    later = open_in(tmp_path, NOW + timedelta(days=340))
    assert later.certificate == first.certificate


def test_rotated_ca_has_another_key(tmp_path: Path) -> None:
    """Who trusts the old one trusts nothing that the new one signs."""
    first = open_in(tmp_path)
    second = rotate_ca(tmp_path / "store", tmp_path / "ca", environ={}, now=NOW)
    assert second.key.public_key() != first.key.public_key()
    assert second.name != first.name
    assert not is_trusted(leaf_of(second), first, NOW)
    assert open_in(tmp_path).certificate == second.certificate
    assert first.certificate_file.read_bytes() in second.bundle_file.read_bytes()
    assert second.key_file.stat().st_mode & 0o777 == 0o600


def test_rotation_mends_a_broken_ca(tmp_path: Path) -> None:
    """It reads nothing of the old one."""
    first = open_in(tmp_path)
    first.key_file.write_bytes(b"broken")
    assert rotate_ca(tmp_path / "store", tmp_path / "ca", environ={}, now=NOW).name != first.name


def test_removed_ca_leaves_nothing(tmp_path: Path) -> None:
    """Neither its key nor what is handed to clients; the next start makes another."""
    first = open_in(tmp_path)
    roots_file = first.write_roots()
    kept = first.key_file.with_name("receipt.key")
    kept.write_bytes(b"x")
    removed = remove_ca(tmp_path / "store", tmp_path / "ca")
    assert {first.key_file, first.certificate_file, first.bundle_file, roots_file} == set(removed)
    assert not any(path.exists() for path in removed)
    assert kept.exists()
    assert remove_ca(tmp_path / "store", tmp_path / "ca") == []
    assert open_in(tmp_path).name != first.name


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Roots of a machine, in one file."""
    file = tmp_path / "system.crt"
    file.write_bytes(b"")
    monkeypatch.setattr(client_root_certificates, "_system_places", lambda: iter([file]))
    return file


@pytest.mark.parametrize("renewed", [False, True])
def test_ca_that_the_machine_trusts_is_warned_of(
    tmp_path: Path, system: Path, caplog: pytest.LogCaptureFixture, renewed: bool
) -> None:
    """Each time that it is opened; also where the machine has the certificate of before."""
    ca = open_in(tmp_path)
    assert "system-wide" not in caplog.text
    system.write_bytes(ca.certificate_file.read_bytes())
    open_in(tmp_path, NOW + timedelta(days=340 if renewed else 0))
    assert "is trusted system-wide" in caplog.text
    assert str(system) in caplog.text


def command(*words: str | Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    assert ended.value.code == 0


def test_commands_show_rotate_and_remove(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """And say what clients have to do then."""
    store = ("--store", tmp_path / "store")
    command("ca", *store)
    shown = capfd.readouterr().out
    assert "valid until" in shown
    command("ca", "show", *store)
    assert capfd.readouterr().out == shown
    command("ca", "rotate", *store)
    rotated = capfd.readouterr().out
    assert rotated.splitlines()[2] != shown.splitlines()[2]
    assert "start `playhead serve` and its agents again" in rotated
    command("ca", "remove", *store)
    assert "removed" in capfd.readouterr().out
    command("ca", "remove", *store)
    assert "there is no CA" in capfd.readouterr().out
