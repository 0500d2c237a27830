"""The certificates by which upstreams know who asks (mutual TLS).

They are read when the proxy starts: one that cannot be used is found then, and not at the first request.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.utils import CryptographyDeprecationWarning
from OpenSSL import SSL, crypto

from ....config import ClientCertificate
from ....config.sections.upstreams import fits
from ...errors import EngineError

_BEGINS = b"-----BEGIN CERTIFICATE-----"


class ClientCertificates:
    """What upstreams are shown that ask for a certificate."""

    def __init__(
        self, certificates: Sequence[ClientCertificate] = (), roots: str | None = None
    ) -> None:
        """Read the files.

        roots: PEM file of the roots by which upstreams are trusted.
        Raises: EngineError.
        """
        self._contexts = [(one.hosts, _open(one, roots)) for one in certificates]

    def find(self, host: str) -> SSL.Context | None:
        """Give what an upstream is shown; None for nothing."""
        host = host.lower().strip("[]").rstrip(".")
        for patterns, context in self._contexts:
            if any(fits(pattern, host) for pattern in patterns):
                return context
        return None


def _open(given: ClientCertificate, roots: str | None) -> SSL.Context:
    chain = _read_chain(given.cert)
    file = given.key or given.cert
    key = _read_key(file)
    if key.public_key() != chain[0].public_key():
        raise EngineError(
            f"the private key in {str(file)!r} does not belong to the certificate in {str(given.cert)!r}",
            "Name the key of the first certificate in that file.",
        )
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    if roots is None:
        context.set_default_verify_paths()
    else:
        context.load_verify_locations(roots)
    try:
        context.use_certificate(chain[0])
        for one in chain[1:]:
            context.add_extra_chain_cert(one)
        context.use_privatekey(crypto.PKey.from_cryptography_key(key))  # type: ignore[arg-type]  # it says if it cannot
    except (SSL.Error, TypeError) as error:
        raise EngineError(
            f"the client certificate in {str(given.cert)!r} cannot be used: {error}",
            "Give one with an RSA, EC or Ed25519 key.",
        ) from error
    return context


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EngineError(
            f"cannot read the file {str(path)!r} of client_certificates: {error.strerror or error}",
            "Name a PEM file that can be read.",
        ) from error


def _read_chain(path: Path) -> list[x509.Certificate]:
    pem = _read(path)
    if _BEGINS not in pem:
        raise EngineError(
            f"there is no certificate in {str(path)!r}, which client_certificates names",
            "Give a PEM file with the certificate first, and then those that lead to its root.",
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CryptographyDeprecationWarning)
            return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise EngineError(
            f"the client certificate in {str(path)!r} is broken", "Give a PEM file of certificates."
        ) from error


def _read_key(path: Path) -> PrivateKeyTypes:
    pem = _read(path)
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except TypeError as error:
        raise EngineError(
            f"the private key in {str(path)!r} has a passphrase",
            "Store it without one, closed to others: openssl pkey -in FILE -out PLAIN, then chmod 600.",
        ) from error
    except ValueError as error:
        raise EngineError(
            f"there is no private key that can be read in {str(path)!r}, which client_certificates names",
            "Give a PEM file with the key of the certificate, as client_certificates' `key`.",
        ) from error
