"""What playback serves, and what it does about the rest."""

from dataclasses import dataclass

from ..keys import custom, key, ref, texts
from ..value_types import ModelDrift
from ..values import (
    choice,
    parse_compare,
    parse_duration,
    parse_model_drift,
    parse_pace,
    parse_run_name,
)
from .live import ClassLive, read_class_live

_CLASS = {
    "anyOf": [
        {"const": "tape"},
        {"type": "object", "properties": {"live": ref(ClassLive)}, "additionalProperties": False},
    ]
}
_LIVE = "live: {hosts: [api.openai.com], reason: trying the new prompt}"


@dataclass(frozen=True, slots=True)
class Playback:
    """What playback serves, and what it does about the rest."""

    run: str = key(
        "latest",
        parse_run_name,
        "The tape that is played without credentials: `latest` or its name.",
    )
    inference: ClassLive | None = custom(
        read_class_live,
        None,
        "`tape`, or `{live: {hosts: [...], reason: ...}}` for model calls.",
        shown="tape",
        shape=_CLASS,
        section=ClassLive,
        example=_LIVE,
    )
    """None: from the tape."""
    reads: ClassLive | None = custom(
        read_class_live, None, "The same for reads.", shown="tape", shape=_CLASS, section=ClassLive
    )
    effects: str = key(
        "stub",
        choice("stub", "refuse"),
        "An effect that is not on the tape: `stub` from `effects` below or"
        " [after the pattern of the tape](effects.md#answers-to-effects-in-playback), or `refuse`.",
    )
    pace: float = key(
        "instant",
        parse_pace,
        "Gaps in streams: `instant`, `recorded`, or a factor on the recorded ones, above 0 and at most 1000.",
    )
    """0 is `instant`, 1 is `recorded`, anything else is a factor on the recorded gaps."""
    compare: tuple[str, ...] = key(
        "none",
        parse_compare,
        "The output of a command that is [compared](receipt.md#stdout-and-files) beside its exit code: `stdout`, `files`,"
        " both with a comma between them, or `none`.",
    )
    late: str = key(
        "held",
        choice("held", "served"),
        "An answer whose recorded client [had left](failures.md#leaving) before it came: `held` back, or `served` at its time.",
    )
    late_wait: float = key(
        "60s",
        parse_duration,
        "How long a client waits for a held answer, counted from the time at which the recorded client left.",
    )
    order: str = key(
        "effects",
        choice("effects", "strict", "free"),
        "Which [order](order.md#order) counts within a lane: `effects`, `strict` or `free`.",
    )
    sleeps: str = key(
        "real",
        choice("real", "short"),
        "`short` keeps the [sleeps](determinism.md#short-sleeps) of a command short that `replay` runs on the recorded clock.",
    )
    allow_model_drift: tuple[ModelDrift, ...] = texts(
        parse_model_drift,
        "Which [model drift](model-drift.md) is served, each as `RECORDED=NEW`.",
        example="- gpt-4o=gpt-5",
    )
