"""A throwaway root, and leaves for loopback, good ones and bad ones."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_ROOT_NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test root")])
_DAY = datetime.timedelta(days=1)
LOOPBACK = ("127.0.0.1", "::1")


@dataclass(frozen=True)
class Certificates:
    """Where the files stand."""

    root: Path
    """PEM of the root: what an upstream's clients have to trust."""
    chain: Path
    """PEM of the leaf's key and certificate."""

    @property
    def root_key(self) -> Path:
        """PEM of the root's key, for further leaves."""
        return self.root.with_name("root-key.pem")


def make_certificates(
    folder: Path, names: tuple[str, ...] = ("localhost", "*.test"), *, key_usage: bool = True
) -> Certificates:
    """Make a root and a leaf for 127.0.0.1, ::1 and `names`.

    key_usage: whether the root says what its key is for: many of companies do not.
    """
    folder.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    root = (
        _builder(_ROOT_NAME, key.public_key(), days=30)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if key_usage:
        # Python 3.13's clients want to see it (VERIFY_X509_STRICT).
        root = root.add_extension(
            x509.KeyUsage(
                digital_signature=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=True,
                crl_sign=True,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
    signed = root.sign(key, hashes.SHA256())
    files = Certificates(folder / "root.pem", folder / "leaf.pem")
    files.root.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    files.root_key.write_bytes(_pem(key))
    _write_leaf(files, names, LOOPBACK, days=30)
    return files


def make_leaf(
    root: Certificates,
    chain: Path,
    names: tuple[str, ...] = ("localhost",),
    addresses: tuple[str, ...] = LOOPBACK,
    *,
    days: int = 30,
) -> Certificates:
    """Make another leaf under the same root.

    days: how long it is valid from now; negative where it has expired.
    """
    files = Certificates(root.root, chain)
    _write_leaf(files, names, addresses, days)
    return files


def _write_leaf(
    files: Certificates, names: tuple[str, ...], addresses: tuple[str, ...], days: int
) -> None:
    root_key = serialization.load_pem_private_key(files.root_key.read_bytes(), None)
    assert isinstance(root_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, [*names, *addresses][0])])
    ips = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    leaf = (
        _builder(subject, key.public_key(), days)
        .add_extension(
            x509.SubjectAlternativeName([*map(x509.DNSName, names), *ips]), critical=False
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()),
            critical=False,
        )
        .sign(root_key, hashes.SHA256())
    )
    files.chain.write_bytes(_pem(key) + leaf.public_bytes(serialization.Encoding.PEM))


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(_ROOT_NAME)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 60 * _DAY)
        .not_valid_after(now + days * _DAY)
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
