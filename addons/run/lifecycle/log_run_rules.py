"""Note in a run's log which rules of the configuration it began with, and which took too long."""

from typing import Any

from ....config import Classes, Config, Mode
from ....config.sections.secrets import field_of
from ....store import RunInfo
from ....tape.canonical.regex_masks import slow
from ....tape.exchange import RequestClass
from ....tape.policy.branch import Branch
from ....tape.policy.resume import Resume
from ....tape.records.events import EventKind
from ..run_state import OpenRun


def note_rules(open_run: OpenRun) -> None:
    """Keep which rules of the configuration a run began with, so that its receipt can hint at idle ones."""
    config, playing = open_run.config, open_run.mode is Mode.PLAYBACK
    rules: dict[str, list[tuple[str, str | None]]] = {}
    rules["ignore"] = [(rule.match.text, None) for rule in config.ignore]
    # A gate holds what leaves, of whatever class; all else that a rule of effects says is for playback.
    rules["effects"] = [
        (rule.match.text, None if rule.gate else RequestClass.EFFECT.value)
        for rule in config.effects
        if playing or rule.gate
    ]
    if playing:
        rules["reads"] = [(rule.match.text, RequestClass.READ.value) for rule in config.reads]
        rules["live"] = [] if open_run.policy.leaves_tape else list_live(open_run)
    rules["contracts"] = [(rule.match.text, None) for rule in config.contracts]
    rules["faults"] = [
        (rule.match.text, None) for rule in config.faults if open_run.mode in rule.modes
    ]
    redacted = _list_redacted(config) if open_run.mode is Mode.RECORD else []
    if redacted:
        open_run.note(EventKind.NOTED, redacted=redacted)
    if any(rules.values()):
        open_run.note(EventKind.NOTED, rules=rules, ignored=_ignored(config))


def describe_classes(classes: Classes) -> dict[str, list[str]]:
    """Give the patterns of a configuration's classes, as a log has them; empty where it has none."""
    told = {kind.value: getattr(classes, kind.value) for kind in RequestClass}
    return {kind: [match.text for match in matches] for kind, matches in told.items() if matches}


def list_live(open_run: OpenRun) -> list[tuple[str, str | None]]:
    """Give the pattern of each live rule, and the class it is limited to."""
    return [(rule.match.text, only and only.value) for rule, only in open_run.policy.live]


def describe_branch(branch: Branch) -> dict[str, Any]:
    """Give what a branch declares, as its log has it."""
    changes = {
        "answer": branch.answer is not None,
        "system": branch.change is not None and branch.change.system is not None,
        "request": branch.change is not None and branch.change.patch is not None,
    }
    more: dict[str, Any] = {}
    if branch.splice is not None:
        more["spliced"] = [branch.splice.name, branch.splice.count]
    if branch.afresh:
        more["afresh"] = True
    if branch.schedule is not None:
        more["faults"] = branch.schedule.texts
    return {
        **more,
        "at": branch.at,
        "changes": [name for name, is_changed in changes.items() if is_changed],
        "live": [[only.value, rule.match.host, rule.reason] for rule, only in branch.live],
        "routes": [[route.match.text, route.place, route.reason] for route in branch.routes],
        "answers": [one.match.text for one in branch.answers],
    }


def describe_resume(crashed: RunInfo, known: Resume) -> dict[str, Any]:
    """Give what a run resumes, as its log has it."""
    return {
        "of": crashed.id,
        "unknown": [[*one.row, one.method, one.url] for one in known.unknown],
        "unanswered": sorted(known.unanswered),
    }


def _ignored(config: Config) -> list[tuple[str, dict[str, tuple[str, ...]]]]:
    """Give the pattern of each rule with its places by key."""
    keys = ("json", "header", "query", "form", "regex")
    return [
        (rule.match.text, {key: names for key in keys if (names := getattr(rule, key))})
        for rule in config.ignore
    ]


def _list_redacted(config: Config) -> list[tuple[str, str]]:
    """Give the key of each rule of `redact`, and the name that it looks for; of a pattern, which may say what is to be hidden, its number."""
    found = []
    for at, rule in enumerate(config.redact):
        for key in ("header", "query", "json", "form"):
            if name := getattr(rule, key):
                found.append((key, field_of(rule) if key == "json" else name))
        found += [(key, str(at)) for key in ("pattern", "path") if getattr(rule, key)]
    return found


def note_slow(open_run: OpenRun) -> None:
    """Say which patterns masked nothing any more because they took too long."""
    for text in slow(open_run.identifier.rules.searched):
        open_run.note(EventKind.NOTED, text=text)
