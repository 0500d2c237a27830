"""What is known of a request, for the policy: its head says it, and its body and trailers may add to it."""

from mitmproxy import http

from ...config import Mode
from ...tape.canonical.address_fields import find_address_fields
from ...tape.canonical.target_overrides import (
    find_body_claims,
    find_claims,
    find_trailer_claims,
    without_claims,
)
from ...tape.classify.by_method_and_url import Kind
from ...tape.exchange import HttpRequest
from ...tape.policy.decide import Facts
from ..run.run_state import OpenRun
from ..wire.convert_http_messages import note

_DROPPED = (
    "trailers that override its method, path or host were left out: it was decided before they came"
)


def find_facts(
    message: http.Request, names: tuple[tuple[str, str], ...], open_run: OpenRun
) -> tuple[Facts, Kind]:
    """Give what is known of a request by its head."""
    data = message.data
    scheme, host, port = message.scheme, message.host, message.port
    target = data.path.decode("latin-1")
    claims = find_claims(
        data.method,
        scheme,
        host,
        port,
        target,
        data.headers.fields,
        names,
        named=bool(data.authority),
    )
    place = message.method, scheme, host, port, target
    facts, kind = Facts.of(place, claims, open_run.config.classes)
    if _may_go_live(open_run):
        found = find_address_fields(data.headers.fields, *place[1:])
        facts = facts._replace(address_fields=found) if found else facts
    return facts, kind


def _may_go_live(open_run: OpenRun) -> bool:
    return open_run.mode is Mode.PLAYBACK and open_run.policy.sends


def hide_names(
    names: tuple[tuple[str, str], ...], open_run: OpenRun
) -> tuple[tuple[str, str], ...]:
    """Give names of hosts without the secrets of a run."""
    return tuple((kind, open_run.redactor.redact_text(text)) for kind, text in names)


def add_form_facts(
    facts: Facts, kind: Kind, asked: HttpRequest, open_run: OpenRun, *, unread: bool = False
) -> tuple[Facts, Kind]:
    """Add what a body and trailers claim: they let nothing out, and may have the request held.

    facts, kind: what is known by the head.
    unread: whether the body has not come.
    """
    body = None if unread or asked.spilled is not None else asked.body
    claims = find_body_claims(asked.method, asked.headers, body)
    place = facts.method, facts.scheme, facts.host, facts.port, facts.target
    fields = facts.address_fields
    if asked.trailers:
        claims = (*claims, *find_trailer_claims(asked))
        if _may_go_live(open_run):
            fields = (*fields, *find_address_fields(asked.trailers, *place[1:]))
    if claims:
        facts, kind = Facts.of(place, (*facts.claims, *claims), open_run.config.classes)
    if claims or fields:
        facts = facts._replace(address_fields=fields)
    return facts, kind


def drop_trailer_claims(flow: http.HTTPFlow, *, live: bool) -> None:
    """Take from a request that was decided by its head the trailers by which it would be another one.

    live: whether a live rule lets it out; then those go, too, that read as an address.
    """
    message = flow.request
    fields = message.trailers.fields if message.trailers else ()
    target = message.data.path.decode("latin-1")
    place = message.scheme, message.host, message.port, target
    kept = without_claims(fields, *place)
    if live:
        kept = tuple(field for field in kept if not find_address_fields((field,), *place))
    if kept != fields:
        note(message, _DROPPED)
        message.trailers = http.Headers(kept) if kept else None
