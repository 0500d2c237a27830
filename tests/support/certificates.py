"""A throwaway root and a leaf for loopback."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificates:
    """Where the files stand."""

    root: Path
    """PEM of the root: what an upstream's clients have to trust."""
    chain: Path
    """PEM of the leaf's key and certificate."""


def make_certificates(
    folder: Path, names: tuple[str, ...] = ("localhost", "*.test")
) -> Certificates:
    """Make a root and a leaf for 127.0.0.1, ::1 and `names`."""
    folder.mkdir(parents=True, exist_ok=True)
    root_key = ec.generate_private_key(ec.SECP256R1())
    leaf_key = ec.generate_private_key(ec.SECP256R1())
    root_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test root")])
    now = datetime.datetime.now(datetime.UTC)

    def builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(root_name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=30))
        )

    root = (
        builder(root_name, root_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        # Python 3.13's clients want to see it (VERIFY_X509_STRICT).
        .add_extension(
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
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(root_key.public_key()), critical=False
        )
        .sign(root_key, hashes.SHA256())
    )
    addresses = [ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")]
    leaf = (
        builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]), leaf_key)
        .add_extension(
            x509.SubjectAlternativeName(
                [*map(x509.DNSName, names), *map(x509.IPAddress, addresses)]
            ),
            critical=False,
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()),
            critical=False,
        )
        .sign(root_key, hashes.SHA256())
    )
    files = Certificates(folder / "root.pem", folder / "leaf.pem")
    files.root.write_bytes(root.public_bytes(serialization.Encoding.PEM))
    files.chain.write_bytes(
        leaf_key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + leaf.public_bytes(serialization.Encoding.PEM)
    )
    return files
