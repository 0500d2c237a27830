"""What playback serves, and what it does about the rest."""

from dataclasses import dataclass

from ..key_declarations import custom, key, ref, texts
from ..parse_values import (
    choice,
    parse_compare,
    parse_duration,
    parse_model_drift,
    parse_pace,
    parse_run_name,
)
from ..value_types import ModelDrift
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
        "Tape for requests without credentials: `latest` or a name.",
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
        "Effects that the tape lacks: [`stub`](effects.md#answers-to-effects-in-playback) (by a rule or a "
        "similar recording), or `refuse`.",
    )
    pace: float = key(
        "instant",
        parse_pace,
        "Gaps in streams: `instant`, `recorded`, or a factor up to 1000.",
    )
    """0 is `instant`, 1 is `recorded`, anything else is a factor on the recorded gaps."""
    compare: tuple[str, ...] = key(
        "none",
        parse_compare,
        "[Compared](receipt.md#stdout-and-files) besides the exit code: `stdout`, `files`, `stdout,files` or `none`.",
    )
    late: str = key(
        "held",
        choice("held", "served"),
        "Answers for which the recorded client [did not wait](failures.md#leaving): `held` or `served`.",
    )
    late_wait: float = key(
        "60s",
        parse_duration,
        "How long a client may wait for a held or missing answer, after the recorded client left.",
    )
    order: str = key(
        "effects",
        choice("effects", "strict", "free"),
        "[Order](order.md#order) within a lane: `effects`, `strict` or `free`.",
    )
    sleeps: str = key(
        "real",
        choice("real", "short"),
        "`real` or [`short`](determinism.md#short-sleeps), on the recorded clock.",
    )
    allow_model_drift: tuple[ModelDrift, ...] = texts(
        parse_model_drift,
        "Allowed [model drift](model-drift.md), each as `RECORDED=NEW`.",
        example="- gpt-4o=gpt-5",
    )
