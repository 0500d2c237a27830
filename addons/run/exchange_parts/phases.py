"""What is done with a request: it is held, sent on and recorded, or played; and what is told of it."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from ....tape.diff.divergence_types import Divergence
from ....tape.exchange import Exchange, Fault, Gone, Interim, RawInterim, Repeat
from ....tape.playback.script import Steps
from ....tape.policy.approval_decision import ApprovalDecision, Ruling
from ....tape.policy.faults import Injection
from ..pending_approvals import PendingApproval
from ..repeated_effects import Effect


@dataclass(slots=True)
class Held:
    """What keeps a request or its answer from going on, on purpose."""

    approval: PendingApproval | None = None
    """The pending approval that a gate created for it."""
    left: bool = False
    """Whether its client left while it was held."""
    injection: Injection | None = None
    """The fault on purpose that hits it."""
    delayed: asyncio.Event | None = None
    """Ends the wait of one that is delayed on purpose."""
    muted: bool = False
    """Whether its client is told nothing of the answer, on purpose."""

    def hit(self, injection: Injection | None) -> None:
        """Note the fault that hits it."""
        self.injection = injection

    def mute(self) -> None:
        """Tell its client nothing."""
        self.muted = True

    def delay(self) -> asyncio.Event:
        """Begin to delay it; give what ends that."""
        self.delayed = asyncio.Event()
        return self.delayed

    def go_on(self) -> None:
        """Delay it no longer; it may be delayed again."""
        self.delayed = None

    def ask(self, approval: PendingApproval) -> None:
        """Hold it until somebody has decided; nobody is asked where its client has left before."""
        self.approval = approval
        if self.left:
            approval.decide(ApprovalDecision(Ruling.LEFT))

    def leave(self) -> None:
        """Note that its client left."""
        self.left = True
        self.let_go(Ruling.LEFT)

    def let_go(self, ruling: Ruling) -> None:
        """Hold it no longer."""
        if self.approval is not None:
            self.approval.decide(ApprovalDecision(ruling))
        if self.delayed is not None:
            self.delayed.set()


@dataclass(slots=True)
class Recording:
    """How far a request has come on its way to the upstream and into the store."""

    recording: bool = False
    forwarded: bool = False
    """Whether it may be sent on: its intent is logged."""
    sent_on: bool = False
    """Whether an upstream has been given its head, and so may act on it."""
    saved: bool = False
    broken: bool = False
    """Whether it was broken off by us: what still comes is not kept."""
    unlogged: bool = False
    """Whether it was sent on though its intent could not be written."""
    unsaved: bool = False
    """Whether a part of it could not be kept, so that it cannot be recorded."""
    gone: Gone | None = None
    fault: Fault | None = None
    warnings: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """Begin to record."""
        self.recording = True

    def forward(self) -> None:
        """Note that it may be sent on."""
        self.forwarded = True

    def send_on(self, *, connected: bool) -> None:
        """Note whether an upstream is given its head."""
        self.sent_on = connected

    def pass_unlogged(self) -> None:
        """Note that its intent could not be written."""
        self.unlogged = True

    def give_up(self) -> None:
        """Note that a part of it could not be kept."""
        self.unsaved = True

    def save(self) -> None:
        """Note that it is kept with what has come."""
        self.saved = True

    def break_off(self) -> None:
        """Keep nothing that still comes."""
        self.broken = True

    def fail(self, fault: Fault) -> None:
        """Note how it failed."""
        self.fault = fault

    def leave(self, gone: Gone) -> None:
        """Note how its client left."""
        self.gone = gone

    def add_warning(self, text: str) -> None:
        """Say something of it on the tape."""
        self.warnings.append(text)

    def warn(self, text: str) -> bool:
        """Say something of it on the tape, once; False where that was said."""
        if text in self.warnings:
            return False
        self.warnings.append(text)
        return True


@dataclass(slots=True)
class Playing:
    """What a client is played of the tape."""

    steps: Steps | None = None
    played_interim: tuple[RawInterim | Interim, ...] = ()
    """Of a WebSocket, those to be sent before its handshake ends."""
    withheld: bool = False
    """Whether a refusal is played in the place of a recorded answer."""
    has_verdict: bool = False
    """Whether its verdict has been logged."""

    def play(self, steps: Steps | None) -> None:
        """Have these steps played."""
        self.steps = steps

    def withhold(self, steps: Steps) -> None:
        """Have a refusal played in the place of a recorded answer."""
        self.steps, self.withheld = steps, True

    def play_interim(self, interim: tuple[RawInterim | Interim, ...]) -> None:
        """Have these sent before a handshake ends."""
        self.played_interim = interim

    def note_verdict(self) -> None:
        """Note that its verdict is logged."""
        self.has_verdict = True


@dataclass(slots=True)
class Account:
    """What is told of a request: in the log, to sinks, and to those who repeat it."""

    logged: dict[str, Any] | None = None
    """What the log says of it: its intent, or what was decided instead."""
    answered: Exchange | None = None
    """What answered it; kept where effects are told to a sink."""
    divergence: Divergence | None = None
    repeat: Repeat | None = None
    effect: Effect | None = None
    gated: Effect | None = None
    """The same among those that a gate on duplicates looks at."""
    undone: bool = False
    """Whether its upstream was sent nothing; that may be known before it is noted among the effects."""

    def log(self, row: dict[str, Any]) -> None:
        """Note what the log says of it."""
        self.logged = row

    def answer(self, exchange: Exchange) -> None:
        """Note what answered it."""
        self.answered = exchange

    def diverge(self, divergence: Divergence | None) -> None:
        """Note how it diverged."""
        self.divergence = divergence

    def note_effect(self, effect: Effect, repeat: Repeat | None) -> None:
        """Note it among the effects of the run, and what it repeats."""
        self.effect, self.repeat = effect, repeat
        effect.undone |= self.undone

    def note_gated(self, effect: Effect) -> Effect:
        """Note it among the effects that a gate looks at."""
        self.gated = effect
        return effect

    def note_undone(self) -> None:
        """Note that it has not happened, so that nobody repeats it: its upstream was sent nothing."""
        self.undone = True
        for effect in (self.effect, self.gated):
            if effect is not None:
                effect.undone = True

    def note_seen(self) -> None:
        """Note that its client was given the whole answer."""
        for effect in (self.effect, self.gated):
            if effect is not None:
                effect.seen = True
