"""Which recorded request one has been so far, whose answer may begin before it has ended."""

from collections.abc import Callable

from ...tape.canonical.canonical_request import Canonical, canonical
from ...tape.exchange import Exchange, Request, RequestClass
from ..answer.compare_rest_of_request import differs
from ..answer.request_extent import find_extent, has_ended, was_open
from ..run.pending_exchange import PendingExchange
from ..run.playback_state import PlaybackState
from ..run.run_state import OpenRun


def find_begun(
    pending: PendingExchange, playback: PlaybackState, request: Request
) -> Exchange | None:
    """Find the recorded request that this one has been so far, and whose answer had begun by then.

    None too where more of it has to come before that is known.
    """
    came = pending.body.came_so_far
    recorded = _find_alike(pending, playback, request, _began_within)
    first = _find_alike(pending, playback, request, _awaits_more) if recorded is not None else None
    if recorded is not None and first is not None and first.seq < recorded.seq:
        # Which of the two it is, its next message tells, or that none comes.
        pending.body.wait_for_more(undecided=pending.body.quiet_at != len(came))
        if pending.body.undecided:
            return None
    if recorded is None and _find_alike(pending, playback, request, _awaits_more) is None:
        recorded = _find_alike(pending, playback, request, _began)
    return recorded


def may_still_be_known(pending: PendingExchange, playback: PlaybackState, request: Request) -> bool:
    """Say whether the tape has a request that this one may still become.

    Where a playback leaves its tape, what is on no tape may be sent once it has come whole: it is always waited for.
    """
    leaves = playback.point.branch is not None or playback.resumption.resume is not None
    return leaves or _find_alike(pending, playback, request, is_alike) is not None


def find_given_up(
    pending: PendingExchange, playback: PlaybackState, request: Request
) -> Exchange | None:
    """Find the recorded request that was given up where this one was."""
    size, ended = pending.body.sent_bytes, pending.body.request_ended

    def given_up(recorded: Exchange, came: bytes) -> bool:
        return _given_up(recorded, came, size, ended=ended)

    return _find_alike(pending, playback, request, given_up)


def find_nearest(
    pending: PendingExchange, playback: PlaybackState, request: Request
) -> Exchange | None:
    """Find a recorded request with the same head: one that was given up, too, or else any other."""
    given_up = _find_alike(pending, playback, request, lambda recorded, _: recorded.saw_nothing)
    return given_up or _find_alike(pending, playback, request, lambda _, __: True)


def _find_alike(
    pending: PendingExchange,
    playback: PlaybackState,
    request: Request,
    fits: Callable[[Exchange, bytes], bool],
) -> Exchange | None:
    """Find the first recorded exchange with the same head that was not served and fits what has come of the body."""
    open_run = pending.open_run
    key = (request.method, request.url.partition("?")[0])
    came = pending.body.came_so_far
    form = _head_form(open_run, request, pending.request_class)
    for seq in playback.find_endpoints().get(key, ()):
        if playback.cursor.served(seq):
            continue
        stored = playback.store.exchanges.find(playback.tape, seq)
        recorded = playback.as_now(stored) if stored is not None else None
        if recorded is None or not fits(recorded, came):
            continue
        if _head_form(open_run, recorded.request, recorded.request_class) == form:
            return recorded
    return None


def _given_up(recorded: Exchange, came: bytes, size: int, *, ended: bool) -> bool:
    """Say whether a recorded request was given up before its client saw an answer, and where this one was.

    size: bytes that have come; fewer of them are in memory where they are too many to be held.
    ended: whether the request had ended by then.
    """
    if not recorded.saw_nothing or (was_open(recorded) if ended else has_ended(recorded)):
        return False
    asked, extent = recorded.request, find_extent(recorded)
    if size < extent.least or (extent.most is not None and size > extent.most):
        return False
    if asked.spilled is not None:
        return True
    return size == len(came) and not differs(asked, 0, came)


def is_alike(recorded: Exchange, came: bytes) -> bool:
    """Say whether a request of which this has come may still become a recorded one."""
    asked, most = recorded.request, find_extent(recorded).most
    if asked.spilled is not None:
        return True
    return (most is None or len(came) <= most) and not differs(asked, 0, came)


def _began(recorded: Exchange, came: bytes) -> bool:
    """Say whether a recorded answer had begun when this much of its request had been sent."""
    response = recorded.response
    if response is None or response.head_need is None or response.head_need > len(came):
        return False
    asked = recorded.request
    return asked.spilled is not None or not differs(asked, 0, came)


def _began_within(recorded: Exchange, came: bytes) -> bool:
    """Say the same of one whose request has all that has come."""
    most = find_extent(recorded).most
    return _began(recorded, came) and (most is None or len(came) <= most)


def _awaits_more(recorded: Exchange, came: bytes) -> bool:
    """Say whether a recorded request is what has come so far, and its answer began only after more of it, or its end."""
    response, asked = recorded.response, recorded.request
    if response is None or (response.head_need is not None and response.head_need <= len(came)):
        return False
    if asked.spilled is not None:
        return len(came) < asked.spilled.size
    return len(came) <= len(asked.body) and not differs(asked, 0, came)


def _head_form(open_run: OpenRun, request: Request, request_class: RequestClass) -> Canonical:
    """Give the canonical form of a request without its body."""
    secret = open_run.redactor.redacted_query(request)
    form = canonical(request, request_class, open_run.identifier.rules, secret)
    return form._replace(body=b"", kind=form.kind.NONE)
