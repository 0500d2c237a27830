"""Decide on one request by what the tape of its run holds, and move the tape's cursor past what is served."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...tape.canonical.canonical_request import raw_key
from ...tape.diff.divergence_types import Dependence
from ...tape.exchange import Exchange, Fingerprint, Request, RequestClass, Seq
from ...tape.matching.cursor import Hit, Unknown
from ...tape.policy.branch import Branch, RequestChange
from ...tape.policy.decide import (
    RESUME,
    UNCONSTRAINED,
    Action,
    Constraints,
    Drifted,
    Found,
    Policy,
)
from ...tape.policy.revise import (
    Cause,
    Disagreement,
    MissedTunnel,
    Refused,
    Supposed,
    TooEarly,
    Unanswerable,
)
from ...tape.records.events import EventKind
from ..answer.request_order import find_needs, find_passed, note_reordered
from ..answer.stub import imitate_tape
from ..branching.apply_scheduled_faults import ask_again, meet_fault
from ..branching.send_edited_request import put_body, read_asked
from ..branching.splice_answers import find_spliced, replace_spliced, splice_in
from ..branching.wait_until_prefix_replayed import wait_for_prefix
from ..run.exchange_parts.prepared_request import Lookup
from ..run.pending_exchange import PendingExchange, leave_prefix, note_divergence
from ..run.playback_state import PlaybackState
from ..run.request_constraints import (
    add_violation,
    decide_on,
    find_key_forms,
    note_served_effect,
)
from .check_recorded_exchange import as_asked, find_disagreements, read_served
from .decide_before_sending import LARGE_BYTES, let_out_live
from .due_failed_tunnels import find_missed, take_missed
from .given_to_another_process import find_given, find_given_to_another, note_given

if TYPE_CHECKING:
    from ..order.reordered_tool_results import ToolResults

_PLACEHOLDER = (
    "it carries the placeholder of a secret that the answer of tape seq {} had: the tape does not have the secret itself,"
    " which `secrets: encrypted` would keep"
)


class TapeLookup:
    """The look-up of one request."""

    def __init__(self, pending: PendingExchange, playback: PlaybackState, request: Request) -> None:
        """Look up a request of a playback that has a tape.

        request: that of the pending exchange, whole and without its secrets.
        """
        self._pending = pending
        self._playback = playback
        self._request = request
        self._kind = pending.request_class

    @property
    def _policy(self) -> Policy:
        """The policy of now: the run may be stopped while something is waited for."""
        return self._pending.open_run.policy

    def look_up(self) -> Awaitable[None] | None:
        """Decide; gives what is still to be waited for."""
        identifier = self._playback.identifier
        known = self._playback.find_known(raw_key(self._request, self._kind))
        # Of an effect its effect key is needed even so.
        effect = self._kind is RequestClass.EFFECT
        if (known is None or effect) and len(self._request.body) > LARGE_BYTES:
            return self._look_up_off_loop()
        if known is None:
            known, key = identifier.identify(self._request, self._kind)
        else:
            key = identifier.effect_key(self._request) if effect else None
        return self._look_up(known, key)

    async def _look_up_off_loop(self) -> None:
        identify = self._playback.identifier.identify
        await _wait(self._look_up(*await asyncio.to_thread(identify, self._request, self._kind)))

    def _find(self, fingerprint: Fingerprint) -> tuple[Fingerprint, Found]:
        repeat = self._policy.find_repeat(self._pending.facts) is not None
        return self._playback.find_recorded(self._request, self._kind, fingerprint, repeat=repeat)

    def _look_up(self, fingerprint: Fingerprint, key: bytes | None) -> Awaitable[None] | None:
        pending, policy = self._pending, self._policy
        fingerprint, hit = self._find(fingerprint)
        pending.identify(fingerprint, key)
        if policy.find_forced(pending.facts) is not None:
            pending.find(Lookup(hit))
            return let_out_live(pending, self._request, fingerprint)
        if self._may_have_changed_system():
            return self._look_for_system(fingerprint, hit)
        return self._look_up_as_asked(fingerprint, hit)

    def _look_up_as_asked(self, fingerprint: Fingerprint, hit: Found) -> Awaitable[None] | None:
        policy = self._policy
        hit = ask_again(self._playback, hit, self._kind)
        if policy.resume is not None and self._is_behind(hit):
            return self._go_on(fingerprint, hit)
        if not isinstance(hit, Hit) and (
            given := find_spliced(self._playback, self._request, self._kind)
        ):
            splice_in(self._pending, self._playback, given)
            return None
        if isinstance(hit, Unknown) and self._kind is RequestClass.INFERENCE:
            return self._look_for_drift()
        if not isinstance(hit, Hit) and self._may_leave():
            return self._leave(hit)
        if not isinstance(hit, Hit) and policy.imitates(self._pending.facts):
            return self._stub(hit)
        if not self._settle(hit) or not isinstance(hit, Hit):
            return None
        if not hit.repeated and self._playback.order.find_earlier(hit.seq) != ():
            return self._check_order(fingerprint, hit)
        return self._take(fingerprint, hit.seq, None)

    # ---- what is not on the tape as it was asked -----------------------------------------------------

    async def _stub(self, found: Found) -> None:
        """Decide on an effect that is not on the tape, once the tape was asked for a pattern."""
        pending = self._pending
        pending.find(Lookup(found))
        made = await asyncio.to_thread(imitate_tape, pending, self._playback, self._request)
        pending.find(Lookup(found, made=made))
        self._settle(found)

    async def _look_for_drift(self) -> None:
        """Find a recorded model call that differs only in fields that may drift."""
        await self._playback.read_values()
        drifts, tool_results = await self._playback.find_miss_search()
        async with drifts.lock:
            if await self._serve_reordered(tool_results):
                return
            near, needs = await drifts.find(self._request, self._policy.drift), None
            while near is not None and near.found.allowed:
                needs = await self._find_needs(near.found.seq)
                if not drifts.is_served(near):
                    break
                # Somebody has asked for it meanwhile just as it was recorded.
                near, needs = await drifts.find(self._request, self._policy.drift), None
            if near is not None and near.found.allowed:
                if self._settle(near.found):
                    await _wait(self._take(near.fingerprint, near.found.seq, needs))
                return
            found = Unknown() if near is None else near.found
            if self._policy.resume is None:
                if self._may_leave():
                    await _wait(self._leave(found))
                else:
                    self._settle(found)
                return
        await self._leave_behind_prefix(found)  # others look for theirs meanwhile

    async def _serve_reordered(self, tool_results: "ToolResults") -> bool:
        """Serve a model call that lists the results of tools in another order than on the tape, if these ran side by side."""
        pending = self._pending
        if pending.open_run.config.playback.order == "strict":
            return False
        found = await asyncio.to_thread(tool_results.find, self._request)
        if found is None or self._playback.cursor.served(found.seq):
            return False
        needs = await self._find_needs(found.seq)
        if self._settle(Hit(found.seq)):
            pending.find(replace(pending.lookup, reordered_results=True))
            await _wait(self._take(found.fingerprint, found.seq, needs))
        return True

    # ---- what a resumed run does -------------------------------------------------------------------

    def _is_behind(self, hit: Found) -> bool:
        """Say whether a resumed run has no answer to a request on its tape that has not been given; of telemetry it has while the prefix lasts."""
        if not isinstance(hit, Hit):
            return True
        return hit.repeated and self._playback.find_awaited() is None

    def _go_on(self, fingerprint: Fingerprint, hit: Found) -> Awaitable[None] | None:
        """Let a request out that a crashed run has no answer to, once its prefix has been asked for."""
        pending, playback = self._pending, self._playback
        if self._kind is RequestClass.EFFECT and pending.lookup.unknown is None:
            keys = find_key_forms(read_asked(pending), pending.open_run.redactor.stands_for)
            unknown = playback.take_unknown(self._request, fingerprint, keys, pending.effect_key)
            pending.find(replace(pending.lookup, unknown=unknown))
        is_unknown = pending.lookup.unknown is not None
        if playback.find_awaited(is_unknown=is_unknown) is None:
            return self._leave(hit)
        if isinstance(hit, Unknown) and self._kind is RequestClass.INFERENCE:
            return self._look_for_drift()
        if self._kind is RequestClass.TELEMETRY:
            self._settle(hit)
            return None
        return self._leave_behind_prefix(hit)

    def _note_crash_point(self) -> None:
        """Note once that a resumed run has come to its crash point."""
        playback = self._playback
        resumption = playback.resumption
        if resumption.resume is None or resumption.reached or playback.find_awaited() is not None:
            return
        resumption.reach()
        self._pending.open_run.note(EventKind.NOTED, crash_point=self._pending.seq)

    def _carries_placeholder(self) -> bool:
        """Refuse what would do something with a placeholder; a model is only told of it."""
        pending, resumption = self._pending, self._playback.resumption
        if resumption.resume is None or self._kind not in (RequestClass.EFFECT, RequestClass.READ):
            return False
        seq = resumption.placeholders.find(read_asked(pending))
        if seq is not None:
            pending.revise(Refused(Cause.PLACEHOLDER, _PLACEHOLDER.format(seq), RESUME))
        return seq is not None

    async def _leave_behind_prefix(self, found: Found) -> None:
        """Wait for the rest of the prefix; what is asked for instead of it diverges."""
        pending, playback = self._pending, self._playback
        awaited = await wait_for_prefix(pending, playback)
        if pending.finished:  # its client has left
            return
        if awaited is None and not playback.resumption.diverged:
            await _wait(self._leave(found))
        else:
            self._settle(found)

    # ---- what a branch does from its point on --------------------------------------------------------

    def _may_leave(self) -> bool:
        """Say whether a branch, which is past its point, sends what its tape does not hold."""
        policy, facts = self._policy, self._pending.facts
        if policy.branch is None or self._playback.find_awaited() is not None:
            return False
        return policy.find_hypothetical(facts) is None and self._declares_way_out()

    def _declares_way_out(self) -> bool:
        policy, facts = self._policy, self._pending.facts
        return policy.find_route(facts) is not None or policy.find_live(facts) is not None

    def _leave(self, found: Found) -> Awaitable[None] | None:
        pending = self._pending
        pending.find(replace(pending.lookup, found=found))
        self._note_crash_point()
        if self._carries_placeholder():
            return None
        if pending.lookup.unknown is None and find_given(pending) is not None:
            return self._leave_unless_given(found)
        note_given(pending)
        fingerprint = pending.fingerprint or Fingerprint(b"")
        return let_out_live(pending, self._request, fingerprint, found)

    async def _leave_unless_given(self, found: Found) -> None:
        """Let out what the run was given before, unless another process was: it may be one that was started again."""
        pending = self._pending
        given = await find_given_to_another(pending)
        if pending.finished:  # its client has left
            return
        pending.find(replace(pending.lookup, given=given))
        fingerprint = pending.fingerprint or Fingerprint(b"")
        await _wait(let_out_live(pending, self._request, fingerprint, found))

    def _may_have_changed_system(self) -> bool:
        """Say whether a model call comes behind a point at which the system prompt was changed."""
        point = self._playback.point
        change = point.branch.change if point.branch is not None else None
        if change is None or change.system is None or self._playback.find_awaited() is not None:
            return False
        return self._kind is RequestClass.INFERENCE

    async def _look_for_system(self, fingerprint: Fingerprint, hit: Found) -> None:
        """Ask with the changed system prompt whatever has the one that was recorded at the point."""
        from ...tape.edits.edit_model_request import (
            read_system,  # reads every dialect: for a branch alone
        )

        point = self._playback.point
        system = await asyncio.to_thread(read_system, self._request)
        change = point.branch.change if point.branch is not None else None
        if change is not None and system is not None and system == point.system:
            seq = hit.seq if isinstance(hit, Hit) else None
            await self._ask_otherwise(replace(change, patch=None, whole=None), seq)
        else:
            await _wait(self._look_up_as_asked(fingerprint, hit))

    async def _ask_otherwise(self, change: RequestChange, seq: Seq | None) -> None:
        """Have a model call ask otherwise, and leave.

        seq: of the recorded exchange that would answer it as it is.
        """
        from ...tape.edits.edit_model_request import change_request

        pending = self._pending
        try:
            body = await asyncio.to_thread(change_request, read_asked(pending), change)
        except ValueError as error:
            text = pending.open_run.redactor.redact_text(f"it cannot be asked otherwise: {error}")
            pending.revise(Refused(Cause.UNCHANGED, text))
            return
        if pending.finished:  # its client has left
            return
        self._request = put_body(pending, body)
        fingerprint, key = await asyncio.to_thread(
            self._playback.identifier.identify, self._request, self._kind
        )
        pending.identify(fingerprint, key)
        pending.find(Lookup(Unknown(), asked_otherwise=True, passed_over=seq))
        await _wait(let_out_live(pending, self._request, fingerprint, Unknown()))

    async def _leave_tape(self, branch: Branch, recorded: Exchange) -> None:
        """Do what a branch declares for its point, which has just been asked for."""
        pending, playback = self._pending, self._playback
        pending.open_run.note(EventKind.NOTED, branched=[pending.seq, recorded.seq])
        first = Seq(0) if branch.alone else recorded.seq
        playback.point.wait_for(await asyncio.to_thread(playback.find_each_time, first))
        if branch.answer is not None:
            pending.find(replace(pending.lookup, recorded=None))
            pending.revise(Supposed(recorded.seq, branch.answer))
        elif branch.change is not None:
            await self._ask_at_point(branch.change, recorded)
        elif self._is_asked_afresh():
            await _wait(self._ask_afresh(recorded.seq))

    def _is_asked_afresh(self) -> bool:
        """Say whether a branch has a model asked although the tape has its answer."""
        branch, facts = self._policy.branch, self._pending.facts
        if branch is None or not branch.afresh or self._kind is not RequestClass.INFERENCE:
            return False
        return self._policy.find_hypothetical(facts) is None and self._declares_way_out()

    def _ask_afresh(self, seq: Seq) -> Awaitable[None] | None:
        """Let out a model call just as it was asked; what the tape has counts as asked for."""
        pending = self._pending
        pending.find(Lookup(Unknown(), passed_over=seq))
        fingerprint = pending.fingerprint or Fingerprint(b"")
        return let_out_live(pending, self._request, fingerprint, Unknown())

    async def _ask_at_point(self, change: RequestChange, recorded: Exchange) -> None:
        if change.system is not None:
            from ...tape.edits.edit_model_request import read_system

            self._playback.point.system = await asyncio.to_thread(read_system, recorded.request)
        self._pending.find(replace(self._pending.lookup, recorded=None))
        await self._ask_otherwise(change, recorded.seq)

    # ---- what is on the tape -------------------------------------------------------------------------

    def _settle(self, found: Found) -> bool:
        """Decide on what stays; True where a recorded exchange is to be served, unless it comes too early."""
        pending, playback = self._pending, self._playback
        now = add_violation(pending, Constraints(model=pending.lookup.made is not None))
        decision = pending.decide(decide_on(pending, self._policy, found, now))
        pending.find(replace(pending.lookup, found=found))
        if decision.action is Action.REFUSE:
            self._diverge(decision.reason)
        if decision.action is not Action.SERVE or not isinstance(found, Hit | Drifted):
            return False
        missed = find_missed(pending.open_run, playback, self._request, found.seq)
        if missed is not None:
            take_missed(pending.open_run, playback, missed)
            pending.revise(MissedTunnel(missed.seq))
        return missed is None

    def _take(
        self, fingerprint: Fingerprint, seq: Seq, needs: Dependence | None
    ) -> Awaitable[None] | None:
        """Read what is served and move the cursor past it; refuse what cannot be, or comes before what it needs.

        fingerprint: under which the cursor has it.
        Gives what is still to be compared where others of its lane that the tape has behind it came first.
        """
        pending, playback, request = self._pending, self._playback, self._request
        if needs is not None and not playback.cursor.served(needs.tape_seq):
            self._refuse(TooEarly(seq, needs))
            return None
        recorded = read_served(pending.open_run, playback, seq)
        if not isinstance(recorded, Exchange):
            self._refuse(recorded)
            return None
        recorded_so = as_asked(pending, recorded)
        wrong = find_disagreements(pending, playback, request, recorded_so, fingerprint)
        if wrong is None:
            return self._take_later(fingerprint, seq, needs)
        pending.find(replace(pending.lookup, recorded=recorded))
        if wrong:
            self._refuse(Disagreement(seq, wrong))
            return None
        if not meet_fault(pending, playback, recorded):
            playback.cursor.take(fingerprint, Hit(seq))
        replace_spliced(pending, playback, seq)
        if playback.resumption.resume is not None:
            note_served_effect(pending, recorded)
            note_given(pending)
            playback.resumption.note_change()
            self._note_crash_point()
        passed = find_passed(pending.open_run, pending, recorded)
        if playback.point.branch is not None and playback.point.reach(seq):
            return self._leave_tape(playback.point.branch, recorded)
        if playback.point.reached:
            # The order behind the point is a branch's own.
            is_asked = seq >= playback.point.at and playback.find_awaited() is None
            return self._ask_afresh(seq) if is_asked and self._is_asked_afresh() else None
        return self._compare_lane(recorded, passed) if passed else None

    def _refuse(self, wrong: Unanswerable) -> None:
        """Refuse what the tape has."""
        self._pending.find(replace(self._pending.lookup, wrong=wrong))
        self._pending.revise(wrong)
        self._diverge(wrong.text)

    def _diverge(self, text: str) -> None:
        request = self._request
        leave_prefix(self._pending, request, f"{request.method} {request.url}", text)

    async def _take_later(
        self, fingerprint: Fingerprint, seq: Seq, needs: Dependence | None
    ) -> None:
        """Serve a request with a credential that may be another one of the tape, once the tape's were read."""
        await self._playback.read_values()
        if self._playback.cursor.served(seq):  # another request was answered with it meanwhile
            await _wait(self._look_up(fingerprint, self._pending.effect_key))
        else:
            await _wait(self._take(fingerprint, seq, needs))

    async def _compare_lane(self, recorded: Exchange, passed: tuple[Seq, ...]) -> None:
        pending = self._pending
        found = await note_reordered(self._playback, pending, self._request, recorded, passed)
        if found is not None:
            note_divergence(pending, found)

    async def _check_order(self, fingerprint: Fingerprint, hit: Found) -> None:
        """Serve a request that others on the tape come before, unless it depends on one of them."""
        pending = self._pending
        while isinstance(hit, Hit):
            needs = await self._find_needs(hit.seq)
            fingerprint, again = self._find(fingerprint)
            if again == hit:
                await _wait(self._take(fingerprint, hit.seq, needs))
                return
            # Another request with the same fingerprint was served meanwhile.
            hit = again
            pending.find(replace(pending.lookup, found=again))
            if self._policy.resume is not None and self._is_behind(hit):
                await _wait(self._go_on(fingerprint, hit))
            elif not isinstance(hit, Hit) and self._may_leave():
                await _wait(self._leave(hit))
            elif not isinstance(hit, Hit) and self._policy.imitates(pending.facts):
                await self._stub(hit)
            else:
                now = add_violation(pending, UNCONSTRAINED)
                pending.decide(decide_on(pending, self._policy, hit, now))

    async def _find_needs(self, seq: Seq) -> Dependence | None:
        """Find what the request depends on that has not been served, if it is answered by exchange `seq`."""
        playback = self._playback
        # Who asks for one exchange alone takes all that comes before it as asked and answered.
        is_alone = playback.point.is_alone and seq == playback.point.at
        if is_alone or playback.order.find_earlier(seq) == ():
            return None
        redactions = self._pending.redactions
        return await asyncio.to_thread(find_needs, playback, seq, self._request, redactions)


async def _wait(waiting: Awaitable[None] | None) -> None:
    if waiting is not None:
        await waiting
