"""`playhead learn`: compare two recordings of the same task; `playhead profiles test`: try the profiles of clients on one or two."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ...addons.rehearsal.rehearse import Rehearsal, RehearsedRun, rehearse
from ...addons.rehearsal.render_report import render_rehearsal
from ...config import Config, Mode, parse_match
from ...config.profiles.client_profile import parse_profile
from ...config.profiles.shipped_profiles import find_profiles
from ...store import RunInfo, Store, StoreError
from ...tape.canonical.canonical_request import find_field_rules
from ...timeline.learning.changed_secrets import have_one_key
from ...timeline.learning.identifying_words import HashWord
from ...timeline.learning.learn import Lesson, learn
from ...timeline.learning.propose_profile import propose_profile, with_profile
from ...timeline.learning.propose_telemetry import find_telemetry
from ...timeline.learning.render_text import render_lesson
from ...timeline.learning.try_profiles import Trial, render_rest, try_on_one, try_on_two
from ..progress import ProgressBar
from ..trust.atomic_files import advise_on_target
from ..trust.redaction_and_receipt_keys import find_redaction_key
from .find_tape import get_recording, redactor_of
from .open_store import open_store
from .restore_archived import restore_runs


class Learned(NamedTuple):
    """What two recordings teach, and what a playback of the first makes of the second under the proposed rules."""

    lesson: Lesson
    rehearsal: Rehearsal

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types; `docs/commands-rules.md` describes them."""
        return self.lesson.to_json() | {"tried": self.rehearsal.to_json()}


def learn_from(config: Config, first: str, second: str) -> Learned:
    """Compare two recordings of the same task under the rules of a configuration, and try the rules that are proposed.

    Raises: UnknownRun, RunOpen; StoreError, where one is a playback, or both are the same.
    """
    restore_runs(config, first, second)
    with open_store(config, readonly=True) as store:
        runs = _two(store, first, second)
        lesson = _with_telemetry(store, config, runs, _learn(store, config, runs))
        rehearsal = _rehearse(store, _with_proposals(config, lesson), runs, lesson)
    served = {*rehearsal.served, *rehearsal.telemetry}
    matching = sum(pair[1] in served for pair in lesson.pairs)
    return Learned(replace(lesson, would_match=matching), rehearsal)


def render_learned(learned: Learned) -> str:
    """Show what two recordings teach, and what came of the trial."""
    lesson, rehearsal = learned
    by = "these rules" if lesson.rules or lesson.telemetry else "the rules of now"
    tried = render_rehearsal(rehearsal, lesson.first, lesson.second, by)
    return f"{render_lesson(lesson)}\n\n{tried}"


def try_profiles(config: Config, first: str, second: str | None) -> list[Trial]:
    """Try the profiles of clients on a recording, or on two of the same task.

    Raises: as `learn_from`.
    """
    if second is None:
        restore_runs(config, first)
        with open_store(config, readonly=True) as store:
            return try_on_one(store, get_recording(store, first), config)
    restore_runs(config, first, second)
    with open_store(config, readonly=True) as store:
        runs = _two(store, first, second)
        return try_on_two(store, *runs, config, _learn(store, config, runs))


class Proposal(NamedTuple):
    """The profile of a client that two recordings propose."""

    text: str
    """YAML, and comments that say what it makes of the two."""
    places: int
    still: int
    """Places at which the client differs all the same."""
    played: str = ""
    """What a playback of the first makes of the second with it."""


def learn_profile(config: Config, first: str, second: str, name: str) -> Proposal:
    """Propose the profile of a client from two recordings of the same task, and say in comments what it makes of them.

    Raises: as `learn_from`.
    """
    restore_runs(config, first, second)
    with open_store(config, readonly=True) as store:
        runs = _two(store, first, second)
        text, file = propose_profile(
            store, *runs, _learn(store, config, runs), name, _find_hash(config)
        )
        if file is None:
            return Proposal(text, 0, 0)
        tried = with_profile(config, file)
        lesson = _learn(store, tried, runs)
        trials = try_on_two(store, *runs, tried, lesson)
        rehearsal = _rehearse(store, tried, runs, lesson)
    places = parse_profile(file.text, file.path).places
    still = sum(len(trial.still) for trial in trials if trial.profile == name)
    played = render_rehearsal(rehearsal, first, second, "this profile")
    text += render_rest(trials, name)
    text += "".join(f"# {line}\n" for line in played.splitlines())
    return Proposal(text, len(places), still, played)


def write_profile(proposal: Proposal, target: Path) -> None:
    """Write a profile into a file of its own.

    Raises: StoreError, where the profile has no place, or the file is there already or cannot be written.
    """
    if not proposal.places:
        raise StoreError(
            f"the two recordings propose no profile, so {str(target)!r} was not written",
            "`playhead learn` without --write lists the differences, and why no pattern fits them",
        )
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(proposal.text)
    except FileExistsError:
        raise StoreError(
            f"{str(target)!r} is there already", "name another file, or remove it"
        ) from None
    except OSError as error:
        raise StoreError(
            f"cannot write {str(target)!r}: {error.strerror or error}", advise_on_target(target)
        ) from error


def _two(store: Store, first: str, second: str) -> tuple[RunInfo, RunInfo]:
    runs = get_recording(store, first), get_recording(store, second)
    if runs[0].number == runs[1].number:
        raise StoreError(f"{first!r} was given twice", "name two recordings of the same task")
    return runs


def _learn(store: Store, config: Config, runs: tuple[RunInfo, RunInfo]) -> Lesson:
    with ProgressBar("reading") as progress:
        return learn(
            store,
            *runs,
            config.ignore,
            redactor_of(config),
            progress,
            config.classes,
            find_field_rules(config),
            find_profiles(config.profiles_off, config.profiles),
            _find_hash(config),
        )


def _find_hash(config: Config) -> HashWord | None:
    """Give what makes the keyed hashes that the recordings of this store have of their environments."""
    key = find_redaction_key(config.store)
    return None if key is None else redactor_of(config, key).hash_word


def _rehearse(
    store: Store, config: Config, runs: tuple[RunInfo, RunInfo], lesson: Lesson
) -> Rehearsal:
    # Placeholders that were made with two keys cannot be compared.
    key = find_redaction_key(config.store) if have_one_key(store, *runs) else None
    redactor = redactor_of(config) if key is None else redactor_of(config, key)
    played = replace(config, mode=Mode.PLAYBACK)
    open_run = RehearsedRun(Mode.PLAYBACK, played, redactor, store, None, runs[0])
    return rehearse(open_run, *runs, lesson.words)


def _with_telemetry(
    store: Store, config: Config, runs: tuple[RunInfo, RunInfo], lesson: Lesson
) -> Lesson:
    """Add what reads like telemetry; its places need no rule."""
    telemetry = find_telemetry(
        store, runs, config.classes, config.effects, lesson, _find_hash(config)
    )
    rules = tuple(rule for rule in lesson.rules if rule.match.text not in telemetry.proposed)
    return replace(
        lesson, telemetry=telemetry.proposed, telemetry_unproved=telemetry.unproved, rules=rules
    )


def _with_proposals(config: Config, lesson: Lesson) -> Config:
    known, more = config.classes.telemetry, map(parse_match, lesson.telemetry)
    classes = replace(config.classes, telemetry=(*known, *more))
    return replace(config, classes=classes, ignore=(*config.ignore, *lesson.rules))
