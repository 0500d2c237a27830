"""The certificate authority that signs Playhead's certificates.

The rules it keeps:

1. The private key stands in `<store>/private/ca.pem` (folder 0700, file 0600 from its first byte) and nowhere else.
   It is made on first use; of several processes that start at once exactly one makes it.
2. The public folder holds what may be handed out: the certificate alone, and the bundle, which is the roots
   that were in force before plus our certificate. Files there change in one step, and only when their content does.
3. By which roots a running proxy trusts its upstreams is in a file of its own in the private folder, named by its
   content: whoever brings the public bundle up to date changes nothing for it.
4. A certificate is valid for a year. In its last month, and where it has expired, it is renewed under the same key and
   name: clients that trust the one before take what the new one signs. A CA that is not Playhead's own is left as it is.
5. The key of the authority is never the key of a TLS server: leaf certificates use a key of their own, which
   lives in memory, one per process. (mitmproxy's store uses one key for both.)

What a client must be told to trust it is in `trust`.
"""

import contextlib
import hashlib
import logging
import os
import stat
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ...store import make_own_folder, require_own_contents, require_own_folder
from ...store.paths import CA_KEY, PRIVATE
from ..errors import EngineError
from .atomic_files import temporary_sibling, write_new, write_public
from .client_root_certificates import certificates_in, find_system_trust, merge, roots_in_force

if TYPE_CHECKING:
    from mitmproxy.certs import CertStore

CERTIFICATE_FILE = "playhead-ca-cert.pem"
BUNDLE_FILE = "playhead-ca-bundle.pem"
ROOTS_PREFIX = "upstream-roots-"
VALIDITY = timedelta(days=365)
"""A year: what is left on a machine by mistake is not trusted for longer."""
_RENEWED_BEFORE = timedelta(days=30)
_NAME = "Playhead CA "
"""Begins the names of our own."""
_BACKDATED = timedelta(days=2)
"""For machines whose clocks are slow."""
_RENEW = "Make a new one with `playhead ca rotate`; clients get it in the new bundle."

_logger = logging.getLogger(__name__)

SigningKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True, slots=True)
class CertificateAuthority:
    """A usable CA and where its files stand."""

    key: SigningKey = field(repr=False)
    certificate: x509.Certificate
    key_file: Path
    certificate_file: Path
    bundle_file: Path
    roots: bytes = field(repr=False)
    """What the bundle holds, as it is now: the file may be written anew by any command."""

    def write_roots(self) -> Path:
        """Write the roots to a private file that nobody changes any more: by them a proxy trusts its upstreams.

        Raises: EngineError.
        """
        name = f"{ROOTS_PREFIX}{hashlib.sha256(self.roots).hexdigest()[:16]}.pem"
        path = self.key_file.parent / name
        write_public(path, self.roots, 0o600)
        return path

    @property
    def name(self) -> str:
        """Common name, as clients show it."""
        names = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return str(names[0].value) if names else self.certificate.subject.rfc4514_string()

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate, upper-case hex pairs joined by colons, as `openssl x509` prints it."""
        return self.certificate.fingerprint(hashes.SHA256()).hex(":").upper()


def open_ca(
    store: Path,
    public_dir: Path,
    *,
    upstream_ca: Path | None = None,
    environ: Mapping[str, str] | None = None,
    now: datetime | None = None,
) -> CertificateAuthority:
    """Open the CA of a store, made if there is none, and bring its public files up to date.

    upstream_ca: PEM file of further roots for the bundle.
    environ: where the roots in force before are named; by default the process's own.
    now: aware time to judge validity by; by default the clock's.
    Raises: EngineError, when the CA cannot be made, read, trusted or published.
    """
    now = now or datetime.now(UTC)
    private = (store / PRIVATE).resolve()
    if public_dir.resolve() == private or private in public_dir.resolve().parents:
        raise EngineError(
            f"the CA's public files cannot be in {str(public_dir)!r}, beside the private key",
            "Choose another folder with --ca-dir: it is the one that is handed to agents.",
        )
    require_own_contents(store / PRIVATE)
    if public_dir.parent == store:  # one that was named elsewhere may be anything
        require_own_folder(public_dir)
    key_file = store / PRIVATE / CA_KEY
    pem = _read_private(key_file)
    if pem is None:
        _make(key_file, now)
        pem = _read_private(key_file)
    if pem is None:
        raise EngineError(f"the CA file {str(key_file)!r} vanished while it was made", "Try again.")
    key, certificate = _parse(pem, key_file)
    if _is_due(certificate, now):
        certificate = _renew(key_file, key, certificate, now)
    _require_valid(certificate, key_file, now)
    public_pem = certificate.public_bytes(serialization.Encoding.PEM)
    _warn_of_system(certificate)
    roots = roots_in_force(os.environ if environ is None else environ, public_dir)
    extra = _read_upstream(upstream_ca) if upstream_ca else []
    blocks = merge(roots, extra, certificates_in(public_pem))
    write_public(public_dir / CERTIFICATE_FILE, public_pem)
    bundle = b"\n".join(blocks) + b"\n"
    write_public(public_dir / BUNDLE_FILE, bundle)
    return CertificateAuthority(
        key, certificate, key_file, public_dir / CERTIFICATE_FILE, public_dir / BUNDLE_FILE, bundle
    )


def certificate_store(ca: CertificateAuthority) -> "CertStore":
    """Give mitmproxy a certificate store that signs with `ca`; it reads and writes no file.

    Imports mitmproxy, so call it only where the engine is about to run.
    """
    from mitmproxy import certs

    leaf_key = ec.generate_private_key(ec.SECP256R1())
    issuer = cast(x509.Certificate, _Issuer(ca.certificate, leaf_key.public_key()))

    class LeafKeyStore(certs.CertStore):
        """A store whose leaf certificates have a key other than the CA's."""

        def get_cert(
            self,
            commonname: str | None,
            sans: Iterable[x509.GeneralName],
            organization: str | None = None,
            crl_url: str | None = None,
        ) -> certs.CertStoreEntry:
            names = sans if isinstance(sans, x509.GeneralNames) else x509.GeneralNames(sans)
            if (commonname, names) not in self.certs:
                # Placed where the inherited look-up finds it; that still prefers certificates a person configured.
                leaf = certs.dummy_cert(
                    self.default_privatekey, issuer, commonname, names, organization, crl_url
                )
                entry = certs.CertStoreEntry(
                    leaf, cast(rsa.RSAPrivateKey, leaf_key), None, self.default_chain_certs
                )
                self.certs[(commonname, names)] = entry
                self.expire(entry)
            return super().get_cert(commonname, names, organization, crl_url)

    key = cast(rsa.RSAPrivateKey, ca.key)  # mitmproxy's annotation; it signs with whatever can sign
    return LeafKeyStore(
        default_privatekey=key,
        default_ca=certs.Cert(ca.certificate),
        default_chain_file=None,
        default_crl=certs.dummy_crl(key, ca.certificate),
        # None leaves finite-field DH out (mitmproxy/net/tls.py tests for it): clients without ECDHE are gone,
        # and the alternative is a parameter file that two processes would write at the same time.
        dhparams=cast(certs.DHParams, None),
    )


@dataclass(frozen=True, slots=True)
class _Issuer:
    """The CA's certificate as `dummy_cert` reads it, but for the public key that it puts into the leaf."""

    certificate: x509.Certificate
    leaf: ec.EllipticCurvePublicKey

    @property
    def subject(self) -> x509.Name:
        return self.certificate.subject

    @property
    def extensions(self) -> x509.Extensions:
        return self.certificate.extensions

    def public_key(self) -> ec.EllipticCurvePublicKey:
        return self.leaf


def _read_private(path: Path) -> bytes | None:
    """Read the key file, closed to everybody else; None when there is none."""
    try:
        with path.open("rb") as file:
            _close_to_others(file.fileno(), path)
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EngineError(
            f"cannot read the CA file {str(path)!r}: {error.strerror or error}",
            "Make it readable for the user that runs Playhead, or choose another --store.",
        ) from error


def _close_to_others(descriptor: int, path: Path) -> None:
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if not mode & 0o077:
        return
    try:
        os.fchmod(descriptor, mode & 0o700)
    except OSError as error:
        raise EngineError(
            f"the CA's private key {str(path)!r} is open to other users (mode {mode:04o})"
            f" and cannot be closed: {error.strerror or error}",
            "Make it private to the user that runs Playhead (chmod 600), or choose another --store.",
        ) from error
    _logger.warning("ca key was open to other users, closed now path=%s mode=%04o", path, mode)


def _make(path: Path, now: datetime) -> None:
    """Make the CA, unless another process is quicker."""
    pem = generate_pem(now)
    temporary = temporary_sibling(path)
    try:
        make_own_folder(path.parent)
        path.parent.chmod(0o700)
        write_new(temporary, pem, 0o600)
        try:
            _publish(temporary, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
    except OSError as error:
        raise EngineError(
            f"cannot make the CA file {str(path)!r}: {error.strerror or error}",
            "Choose a folder that can be written with --store.",
        ) from error


def _publish(temporary: Path, path: Path) -> None:
    """Give the finished file its name; the first of several processes wins."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return
    except OSError:
        # A file system without hard links. The window between the test and the renaming is microseconds.
        if not path.exists():
            temporary.rename(path)


def generate_pem(now: datetime) -> bytes:
    """Make a key and its certificate, as the CA's file holds them."""
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    text = f"{_NAME}{identifier.digest.hex()[:8]}"
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
    return _to_pem(key, _certify(key, name, now))


def _to_pem(key: SigningKey, certificate: x509.Certificate) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ) + certificate.public_bytes(serialization.Encoding.PEM)


def _certify(key: SigningKey, name: x509.Name, now: datetime) -> x509.Certificate:
    """Make the certificate of a CA, signed by itself."""
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now - _BACKDATED + VALIDITY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )


def _is_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Say whether a certificate of ours expires soon, has expired, or is valid for longer than one is made for."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if certificate.issuer != certificate.subject or not names:
        return False
    if not str(names[0].value).startswith(_NAME):
        return False
    ends = certificate.not_valid_after_utc
    return ends - now < _RENEWED_BEFORE or ends - certificate.not_valid_before_utc > VALIDITY


def _renew(
    path: Path, key: SigningKey, certificate: x509.Certificate, now: datetime
) -> x509.Certificate:
    """Make a new certificate under the same key and name, and put it into the CA's file.

    One that cannot be written is not used: other processes would publish the old one.
    Raises: EngineError, where the old one has expired.
    """
    renewed = _certify(key, certificate.subject, now)
    try:
        write_public(path, _to_pem(key, renewed), 0o600)
    except EngineError as error:
        if now > certificate.not_valid_after_utc:
            raise
        _logger.warning("the CA could not be renewed: %s", error)
        return certificate
    return renewed


def _warn_of_system(certificate: x509.Certificate) -> None:
    """Say so where this machine trusts the CA for every program."""
    place = find_system_trust(public_bytes(certificate))
    if place is not None:
        _logger.warning(
            "the CA is trusted system-wide, by %s: anyone with its private key can read all TLS of this machine."
            " Remove it there; the variables that `playhead record` and `playhead env` set are enough",
            place,
        )


def public_bytes(certificate: x509.Certificate) -> bytes:
    """Give the public key of a certificate as it is written inside each certificate of that key (DER)."""
    return certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _parse(pem: bytes, path: Path) -> tuple[SigningKey, x509.Certificate]:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
        certificate = x509.load_pem_x509_certificate(pem)
        is_ca = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except TypeError as error:
        raise EngineError(
            f"the CA's private key {str(path)!r} is encrypted", "Store it without a passphrase."
        ) from error
    except (ValueError, x509.ExtensionNotFound, x509.UnsupportedGeneralNameType) as error:
        raise EngineError(
            f"the CA file {str(path)!r} does not hold a private key and the certificate of a CA in PEM form",
            _RENEW,
        ) from error
    if not isinstance(key, SigningKey):
        raise EngineError(f"the CA's private key {str(path)!r} is neither EC nor RSA", _RENEW)
    if key.public_key() != certificate.public_key():
        raise EngineError(f"key and certificate in the CA file {str(path)!r} do not match", _RENEW)
    if not is_ca:
        raise EngineError(f"the certificate in {str(path)!r} is not that of a CA", _RENEW)
    return key, certificate


def _require_valid(certificate: x509.Certificate, path: Path, now: datetime) -> None:
    """Refuse a CA out of its time, which would fail in every client with a message of its own. Raises: EngineError."""
    if now > certificate.not_valid_after_utc:
        raise EngineError(
            f"the CA in {str(path)!r} expired on {certificate.not_valid_after_utc:%Y-%m-%d}", _RENEW
        )
    if now < certificate.not_valid_before_utc:
        raise EngineError(
            f"the CA in {str(path)!r} is valid only from {certificate.not_valid_before_utc:%Y-%m-%d} on",
            "Set this machine's clock.",
        )


def _read_upstream(path: Path) -> list[bytes]:
    try:
        blocks = certificates_in(path.read_bytes())
        with warnings.catch_warnings():
            # Roots with serial number 0 exist; they are used as they are.
            warnings.simplefilter("ignore", CryptographyDeprecationWarning)
            for block in blocks:
                x509.load_pem_x509_certificate(block)
    except OSError as error:
        raise EngineError(
            f"cannot read the upstream roots {str(path)!r}: {error.strerror or error}",
            "Give --upstream-ca, or upstream_ca in the configuration, a PEM file that can be read.",
        ) from error
    except ValueError as error:
        raise EngineError(
            f"the upstream roots {str(path)!r} hold a broken certificate",
            "Give --upstream-ca, or upstream_ca in the configuration, a PEM file of certificates.",
        ) from error
    if not blocks:
        raise EngineError(
            f"the upstream roots {str(path)!r} hold no certificate",
            "Give --upstream-ca, or upstream_ca in the configuration, a PEM file of certificates.",
        )
    return blocks
