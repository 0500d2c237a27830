"""Find the failed tunnel of the tape that is to fail next, and the one that should have failed before a request."""

from ...tape.classify.by_body import class_of_tunnel
from ...tape.exchange import Exchange, Request, RequestClass, Seq
from ...tape.matching.cursor import Hit
from ..run.playback_state import PlaybackState
from ..run.run_state import OpenRun


def find_due(open_run: OpenRun, playback: PlaybackState, host: str, port: int) -> Exchange | None:
    """Find the failed tunnel to an origin that is to fail next, if all that came before it has been asked."""
    if playback.point.is_alone:
        return None  # it counts as having failed before
    asked = tunnel_request(host, port)
    found = open_run.identifier.fingerprint(asked, class_of(open_run, asked))
    hit = playback.cursor.find(
        found, RequestClass.READ
    )  # telemetry fails as often as then, and not for ever
    if not isinstance(hit, Hit):
        playback.failing.discard((host, port))
        return None
    playback.failing.add((host, port))
    recorded = open_run.store.exchanges.find(playback.tape, hit.seq)
    if recorded is None:
        return None
    origin = f"{tunnel_request(host, port).url}/"
    before = (
        seq
        for (_, url), seqs in playback.find_endpoints().items()
        if f"{url}/".startswith(origin)
        for seq in seqs
        if seq <= recorded.tunnel.after
    )
    return recorded if all(playback.cursor.served(seq) for seq in before) else None


def find_missed(
    open_run: OpenRun, playback: PlaybackState, request: Request, seq: Seq
) -> Exchange | None:
    """Find the failed tunnel that should have come before a request which is about to be served.

    seq: of the recorded exchange that would answer it; it came through a later tunnel.
    """
    if (request.host, request.port) not in playback.failing:
        return None
    missed = find_due(open_run, playback, request.host, request.port)
    if missed is None:
        return None
    recorded = open_run.store.exchanges.find(playback.tape, seq)
    later = recorded is not None and recorded.tunnel.number > missed.tunnel.number
    return missed if later else None


def take_missed(open_run: OpenRun, playback: PlaybackState, recorded: Exchange) -> None:
    """Move past a failed tunnel that is about to fail again."""
    found = open_run.identifier.fingerprint(recorded.request, class_of(open_run, recorded.request))
    playback.cursor.take(found, Hit(recorded.seq))


def class_of(open_run: OpenRun, tunnel: Request) -> RequestClass:
    """Say what kind of call a tunnel is: by itself it changes nothing, and to where telemetry alone is sent it is telemetry."""
    return class_of_tunnel(tunnel, open_run.config.classes)


def tunnel_request(host: str, port: int) -> Request:
    """Give the request for a tunnel, as it is kept."""
    return Request("CONNECT", "https", host, port, "", "HTTP/1.1", ())
