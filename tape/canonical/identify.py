"""Identify requests: the fingerprint by which one is found, and the effect key by which an effect is repeated."""

from collections.abc import Callable
from typing import NamedTuple

from ..exchange import Fingerprint, Request, RequestClass
from ..headers.shipped_lists import DECISIVE_NAMES
from .canonical_request import Canonical, Rules, canonical, effect_key, fingerprint


class Identifier(NamedTuple):
    """How requests are compared in one run. Any thread."""

    rules: Rules
    redacted_query: Callable[[Request], frozenset[str]]
    """Gives the names of the query in whose values something was redacted."""

    def fingerprint(self, request: Request, request_class: RequestClass) -> Fingerprint:
        """Bring a request into canonical form and hash it."""
        return fingerprint(self.form(request, request_class))

    def identify(
        self, request: Request, request_class: RequestClass
    ) -> tuple[Fingerprint, bytes | None]:
        """Give a request's fingerprint and, of an effect, its effect key."""
        form = self.form(request, request_class)
        effect = request_class is RequestClass.EFFECT
        return fingerprint(form), effect_key(form) if effect else None

    def effect_key(self, request: Request) -> bytes:
        """Give the effect key of an effect."""
        return effect_key(self.form(request, RequestClass.EFFECT))

    def head_and_body_key(self, request: Request, request_class: RequestClass) -> bytes:
        """Give the fingerprint of a request but for its method, place, path and query.

        Of its header fields those count that are known to mean something: a new id in each request is no new request, nor is
        another idempotency key of an effect.
        """
        form = self.form(request, request_class)
        headers = tuple(field for field in form.headers if field[0] in DECISIVE_NAMES)
        bare = form._replace(
            method="", scheme="", authority="", path="", query=(), headers=headers, names=()
        )
        if form.keyless is not None:
            bare = bare._replace(kind=form.keyless[0], body=form.keyless[1])
        return fingerprint(bare)

    def form(self, request: Request, request_class: RequestClass) -> Canonical:
        """Give the canonical form of a request."""
        return canonical(request, request_class, self.rules, self.redacted_query(request))
