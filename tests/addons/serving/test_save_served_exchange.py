"""What a resumed run is served is kept in it, so that it is a tape."""

import time
from pathlib import Path

from playhead.addons.run.run_state import OpenRun
from playhead.addons.serving.save_served_exchange import keep_served
from playhead.config import Config, Mode
from playhead.store import RunInfo, Store
from playhead.tape.exchange import Exchange, RequestClass, Seq, VerdictKind
from playhead.tape.policy.resume import Resume
from playhead.tape.records.events import EventKind
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import make_exchange, make_request, write_run
from playhead.tests.support.pending import make_pending

READ = "GET https://api.test/x"


async def keep(store: Store, recorded: Exchange) -> tuple[RunInfo, Exchange | None]:
    """Have an exchange of a tape be served as seq 7 of a run that resumes it; give that, and what it has kept."""
    tape = await write_run(store, "tape", [recorded])
    run = await store.runs.create("tape", mode="playback", at_ns=time.time_ns(), parent=tape)
    open_run = OpenRun(Mode.PLAYBACK, Config(), Redactor(b"key"), store, run, tape, resume=Resume())
    assert open_run.playback is not None
    keep_served(make_pending(open_run, READ, seq=7), open_run.playback, recorded, None)
    run = await store.runs.seal(run, reason="a test", at_ns=time.time_ns())
    return run, store.exchanges.find(run, 7)


async def test_a_served_exchange_is_kept_under_its_own_seq(tmp_path: Path) -> None:
    """Its answer is that of the tape, and its verdict says from where it is; the log has its hash."""
    recorded = make_exchange(3, request=make_request(READ), kind=RequestClass.READ)
    with Store.open(tmp_path) as store:
        run, kept = await keep(store, recorded)
        (outcome,) = [one for one in store.events.all(run) if one.kind is EventKind.OUTCOME]
    assert kept is not None
    assert (kept.seq, kept.verdict, kept.reason) == (7, VerdictKind.SERVED, "seq 3 of tape")
    assert (kept.request, kept.response) == (recorded.request, recorded.response)
    assert outcome.seq == Seq(7)
    assert outcome.data["hash"]


async def test_a_tunnel_that_failed_again_is_not_kept(tmp_path: Path) -> None:
    """It is no request that an agent asks for."""
    tunnel = make_exchange(3, request=make_request("CONNECT https://api.test"))
    with Store.open(tmp_path) as store:
        _, kept = await keep(store, tunnel)
    assert kept is None
