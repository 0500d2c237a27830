"""Ask a model call otherwise than the agent did: the changed body is what is sent, compared and kept."""

from ...tape.exchange import RawRequest, Request
from ..run.pending_exchange import PendingExchange
from ..wire.convert_http_messages import read_request

ASKED_OTHERWISE = "asked otherwise than the agent did, as the branch declares"


def read_asked(pending: PendingExchange) -> RawRequest:
    """Give a request as its client sent it, which has come whole."""
    arrival = pending.arrival
    return read_request(pending.flow, arrival.fields, names=arrival.names)


def put_body(pending: PendingExchange, body: bytes) -> Request:
    """Put another body in the place of what the client sent; give the request as it is compared and kept."""
    message = pending.flow.request
    message.content = body  # which corrects the length in its head
    asked = read_request(pending.flow, message.data.headers.fields, names=pending.arrival.names)
    request = pending.prepare(asked, with_body=True)
    pending.body.come(body, searched=True)
    pending.progress.warn(ASKED_OTHERWISE)
    return request
