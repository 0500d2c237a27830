"""What `resume` does with a crashed run: what its log has, what the agent asks for again, and where each answer comes from.

`SITUATIONS` are small logs and small agents. `WORDS` are command lines that are refused before anything runs.

A request is a letter and a number. `m` is a model call, `r` a read, `e` an effect, `k` an effect with an idempotency key that is the
same in each run, `n` an effect with a new key in each run, `t` telemetry. The same letter and number are the same request.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Situation:
    """A log that ended in a crash, and an agent that starts again."""

    name: str
    log: str
    """What was asked before the crash, in order. `?`: the intent is in the log and no outcome; `!`: the upstream broke off;
    `:5`: the upstream answered with 500."""
    asks: str
    """What the agent asks now, in order, one at a time, each with where its answer comes from: `tape`; `live`, once, from the upstream;
    `approved` or `denied`, held at a gate and then sent or not; `gone`, discarded; `refused`."""
    exit_code: int = 0
    """Of `resume`, where its command ends with 0."""


SITUATIONS = (
    # Up to the crash the tape answers, behind it the upstream
    Situation("between two steps", "m1 e1 m2", "m1=tape e1=tape m2=tape e2=live m3=live"),
    Situation("right after an effect", "m1 e1", "m1=tape e1=tape m2=live"),
    Situation("the agent ends at the crash point", "m1 e1", "m1=tape e1=tape"),
    Situation("nothing was answered yet", "m1?", "m1=live e1=live"),
    Situation("a model call without an outcome", "m1 m2?", "m1=tape m2=live e1=live"),
    Situation("a read without an outcome", "m1 r1?", "m1=tape r1=live e1=live"),
    Situation("another call than the one without an outcome", "m1 m2?", "m1=tape m3=live e1=live"),
    # Effects without an outcome wait for a person
    Situation("an unknown effect is approved", "m1 e1?", "m1=tape e1=approved m2=live"),
    Situation("an unknown effect is denied", "m1 e1?", "m1=tape e1=denied m2=live"),
    Situation("an unknown effect with its key", "m1 k1?", "m1=tape k1=approved m2=live"),
    Situation("an unknown effect with another key", "m1 n1?", "m1=tape n1=approved m2=live"),
    Situation("two unknown effects", "m1 e1? e2?", "m1=tape e1=approved e2=denied m2=live"),
    Situation("an attempt and its retry", "m1 k1? k1?", "m1=tape k1=approved m2=live"),
    Situation("an attempt and its retry without a key", "e1? e1?", "e1=denied m1=live"),
    Situation("a retry that comes", "k1? k1?", "k1=approved k1=approved m1=live"),
    Situation("known once, unknown once", "e1 e1?", "e1=tape e1=approved m1=live"),
    Situation("unknown before it is known", "e1? e1", "e1=tape e1=approved m1=live"),
    Situation("unknown, then asked once more", "e1?", "e1=approved e1=live"),
    # Effects with an outcome are never sent again
    Situation("an effect that failed", "e1:5 m1", "e1=tape m1=tape e2=live"),
    Situation("the retry of an effect that failed", "e1:5", "e1=tape e1=approved m1=live"),
    Situation("the retry with its key of one that failed", "k1:5", "k1=tape k1=live"),
    Situation("an effect that was cut", "e1! m1", "e1=tape m1=tape e2=live"),
    Situation("the same effect twice", "e1 e1", "e1=tape e1=tape e1=live"),
    Situation("a new key for a known effect", "n1 m1", "n1=tape m1=tape e2=live"),
    # A prefix that is another stops before anything leaves
    Situation("another effect in the prefix", "m1 e1 m2", "m1=tape e9=refused e1=refused", 121),
    Situation("another call in the prefix", "m1 e1 m2", "m9=refused m1=refused e1=refused", 121),
    Situation("a step is left out", "m1 r1 e1", "m1=tape e1=tape e2=refused r1=refused", 121),
    Situation("the last step is left out", "m1 e1 r1", "m1=tape e1=tape m2=refused", 121),
    Situation(
        "another effect than the unknown one", "m1 e1?", "m1=tape e9=refused m2=refused", 121
    ),
    Situation("the unknown effect is left out", "m1 e1?", "m1=tape m2=refused e1=refused", 121),
    Situation("effects in another order", "m1 e1 e2 m2", "m1=tape e2=tape e1=tape e3=refused", 121),
    Situation(
        "the last effects in another order", "m1 e1 e2", "m1=tape e2=tape e1=tape e3=refused", 121
    ),
    Situation("the agent ends in the prefix", "m1 e1 m2", "m1=tape e1=tape", 125),
    # Telemetry is no part of the prefix
    Situation("telemetry that is not sent again", "m1 t1 e1", "m1=tape e1=tape m2=live"),
    Situation("new telemetry in the prefix", "m1 e1", "m1=tape t2=gone e1=tape t3=live m2=live"),
)


@dataclass(frozen=True)
class Words:
    """A command line that is refused."""

    name: str
    words: tuple[str, ...]
    """Behind `resume`."""
    says: tuple[str, ...]
    """Are in what is said: what is missing, and what to do."""


GO = ("--", "true")
WORDS = (
    Words("no command", ("crashed",), ("a resumed run executes the command that you give", "-- ")),
    Words("no run", GO, ("no recording is named before `--`", "playhead resume RUN --store")),
    Words("a run that nobody knows", ("nobody", *GO), ("unknown run 'nobody'", "playhead runs")),
    Words("a run that ended", ("ended", *GO), ("ended", "playhead branch ended --at")),
    Words("a run that goes on", ("open", *GO), ("still", "playhead seal open")),
    Words("a playback", ("ended@1", *GO), ("plays 'ended'", "playhead replay ended")),
    Words("a branch", ("ended@3", *GO), ("plays 'ended'", "playhead branch ended")),
    Words("a run that was resumed", ("resumed", *GO), ("was resumed as", "ended")),
    Words("a run with a gap", ("gap", *GO), ("are missing on its tape", "effects")),
    Words("an archived run out of reach", ("archived", *GO), ("archive",)),
    Words("another key", ("crashed", *GO), ("key",)),
    Words("nobody is asked", ("crashed", *GO), ("say --yes",)),
    Words("a sandbox that is none", ("crashed", "--sandbox", "x", *GO), ("sandbox", "'x'")),
    Words(
        "a program that is not there",
        ("crashed", "--yes", "--no-sandbox", "--", "no-such-program"),
        ("cannot start 'no-such-program'",),
    ),
)

TWICE = (
    ("a resumed run that crashed is continued, not the run before it", "continued"),
    ("what the first resume has sent is on the tape of the second", "tape"),
    ("a resume that crashed in its prefix has sent nothing, and the first run is resumed", "first"),
    ("a second resume beside one that goes on is refused", "refused"),
    ("a second resume of a run whose resume ended is refused", "refused"),
)
"""What becomes of a run that is resumed more than once."""

AUTO = (
    ("off, as a crashed run's name comes", "a new run begins"),
    ("auto, as a crashed run's name comes", "it is continued"),
    ("auto, as the name of a run that ended comes", "a new run begins"),
    ("auto, as a new name comes", "a new run begins"),
    ("auto, as what comes is not what was asked before", "it is refused, and nothing leaves"),
    ("auto, as the proxy crashes again", "the last one is continued"),
)
"""What `runs.resume` does in `playhead serve`."""

DESERTED = (
    ("a read", "m1 r1~", "m1=tape r1=live m2=live"),
    ("a model call", "m1 m2~", "m1=tape m2=live e1=live"),
    ("an effect that was answered late", "m1 e1>", "m1=tape e1=tape m2=live"),
)
"""The agent dies a moment before its proxy, while it waits: it has not given up, and is not kept waiting when it asks again.

`~`: its client left, and the upstream had not answered. `>`: the upstream answered after that.
"""
