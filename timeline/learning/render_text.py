"""The result of `learn` as plain text for a terminal."""

from collections.abc import Sequence

from ...tape.counted import counted
from ..receipts.safe_terminal_text import plain, table
from .learn import (
    BROUGHT,
    CONTENT,
    NOT_EVERYWHERE,
    PARTY,
    UNPROVED,
    Lesson,
    Partnerless,
    Place,
    render_rules,
    render_telemetry,
)

_PLACES = 60
_PARTNERLESS = 12
_VALUE = 44
_CONTENT = "At places of the class content the two ask for something else. No rule is proposed there: it would give a request the answer to another one."
_CHECK = "Where nothing proves that the client makes a value anew, check what it is the id or time of. If a replay may answer a request with another one there, write the rule yourself."

_LOOKS_LIKE = "Looks like telemetry: check. Values there may order something, as the name of an event can, so no rule is proposed:"


def render_lesson(lesson: Lesson) -> str:
    """Show a lesson: what differed, what has no partner, and the rules to be pasted."""
    first, second = plain(lesson.first, 60), plain(lesson.second, 60)
    lines = [
        f"{first} ({lesson.requests[0]} requests) and {second} ({lesson.requests[1]}): {lesson.aligned} "
        f"aligned, {lesson.same} of them the same question already"
    ]
    lines += _places(lesson.places)
    lines += _partnerless(f"only in {first}", lesson.only_first)
    lines += _partnerless(f"only in {second}", lesson.only_second)
    if lesson.telemetry:
        lines += [
            "",
            "These look like telemetry: batches of events that differ mostly, and are answered with nothing. If they are, paste",
            "",
            render_telemetry(lesson.telemetry).rstrip("\n"),
        ]
    if lesson.telemetry_unproved:
        lines += ["", _LOOKS_LIKE, *(f"  {plain(one)}" for one in lesson.telemetry_unproved)]
    if any(place.why in (CONTENT, PARTY, UNPROVED) for place in lesson.places):
        lines += ["", _CONTENT]
    if any(place.why in (UNPROVED, BROUGHT, NOT_EVERYWHERE) for place in lesson.places):
        lines += ["", _CHECK]
    if lesson.rules:
        lines += [
            "",
            "Nothing was changed. Read each rule, then paste those you agree with into the configuration:",
            "",
            render_rules(lesson.rules).rstrip("\n"),
        ]
    elif lesson.aligned == lesson.same:
        lines += ["", "No rule is needed."]
    else:
        lines += ["", "No rule is proposed: nothing that differs is made anew each time."]
    return "\n".join(lines)


def _places(places: Sequence[Place]) -> list[str]:
    lines: list[str] = []
    shown = places[:_PLACES]
    for match in dict.fromkeys(place.match for place in shown):
        lines += ["", plain(match)]
        lines += [
            f"  {line}"
            for line in table(
                [
                    (
                        _class(place),
                        plain(place.place, 80),
                        counted(place.seen, "time"),
                        f"seq {place.seqs[0]}: {plain(place.values[0], _VALUE)}",
                        f"seq {place.seqs[1]}: {plain(place.values[1], _VALUE)}",
                        "" if place.proposed or place.why == place.value_class else place.why,
                    )
                    for place in shown
                    if place.match == match
                ]
            ).splitlines()
        ]
    if len(places) > _PLACES:
        lines.append(f"  … and {len(places) - _PLACES} more")
    return lines


def _class(place: Place) -> str:
    return place.value_class.value + (f" ({place.form})" if place.form else "")


def _partnerless(title: str, rows: Sequence[Partnerless]) -> list[str]:
    if not rows:
        return []
    lines = ["", f"{title}:"]
    lines += [f"  seq {row.seq}  {plain(f'{row.method} {row.url}')}" for row in rows[:_PARTNERLESS]]
    if len(rows) > _PARTNERLESS:
        lines.append(f"  … and {len(rows) - _PARTNERLESS} more")
    return lines
