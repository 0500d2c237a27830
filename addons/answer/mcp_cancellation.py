"""Whether a client has told its MCP server that it gives up a call: it ignores an answer that comes after that, and may leave.

Source: Model Context Protocol, "Cancellation".
"""

from ...tape.canonical.json_rpc_client_ids import cancels
from ...tape.exchange import Seq
from ...tape.headers.shipped_lists import MCP_SESSION
from ...tape.playback.script import Steps
from ..run.pending_exchange import PendingExchange

_LOOKED_AT = 64


def is_cancelled(pending: PendingExchange, steps: Steps) -> bool:
    """Say whether what is to be played next came, on the tape, behind the cancellation of its call, which has come again."""
    playback, decision, step = pending.open_run.playback, pending.decision, steps.next
    if playback is None or decision is None or decision.seq is None or step is None:
        return False
    causes = map(Seq, step.causes[:_LOOKED_AT])
    told = [seq for seq in causes if playback.cursor.served(seq)]
    call = playback.read_recorded(decision.seq) if told else None
    if call is None:
        return False
    for seq in told:
        notice = playback.read_recorded(seq)
        if notice is None or notice.request.url != call.request.url:
            continue
        session = notice.request.header(MCP_SESSION)
        if session == call.request.header(MCP_SESSION) and cancels(
            notice.request.body, call.request.body
        ):
            return True
    return False
