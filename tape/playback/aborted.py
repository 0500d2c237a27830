"""What a client saw of an exchange that Playhead itself aborted: a reset. Pure.

The answer to an effect may have come after that, and is on the tape; the client never saw it, and did not leave by itself. So nothing
waits for the present client to leave, as for one that gave up (`script.py`): it is reset where the recorded one was.
"""

from dataclasses import replace

from ..exchange import NO_TEXT, Ending, Exchange, Fault, FaultKind, Phase, Response


def as_delivered(recorded: Exchange) -> Exchange:
    """Give an exchange as its client saw it, if it was aborted; any other as it is, and one whose answer is too large to be held."""
    gone, response = recorded.gone, recorded.response
    if (
        gone is None
        or not gone.aborted
        or (gone.head and response is not None and response.spilled)
    ):
        return recorded
    begun = gone.head and response is not None
    kind, phase = (FaultKind.CUT, Phase.BODY) if begun else (FaultKind.RESET, Phase.HEAD)
    return replace(
        recorded,
        response=_cut(response, gone.chunks) if gone.head and response is not None else None,
        interim=tuple([one for one in recorded.interim if one.at_us <= gone.at_us]),
        fault=Fault(kind, phase, NO_TEXT, gone.at_us, Ending.RST),
        gone=None,
    )


def _cut(response: Response, count: int) -> Response:
    chunks = response.chunks[:count]
    body = response.body[: sum(chunk.size for chunk in chunks)]
    secrets = tuple([one for one in response.secrets if one.at + one.size <= len(body)])
    return replace(response, body=body, chunks=chunks, trailers=(), complete=False, secrets=secrets)
