"""How long runs are kept, and where they are moved."""

from dataclasses import dataclass

from ..archive_url import ArchivePlace, parse_archive
from ..document import Entry, Value
from ..key_declarations import SCALAR, custom, key
from ..parse_values import LABEL_RULE, is_label, parse_keep, parse_kept, show

_Labels = tuple[tuple[str, float | None], ...]
_NO_LABELS: _Labels = ()


def _read_labels(value: Value) -> _Labels:
    return tuple(map(_read_label, value.entries()))


def _read_label(entry: Entry) -> tuple[str, float | None]:
    if not is_label(entry.name):
        entry.key.fault(f"{show(entry.name)} is no label; {LABEL_RULE}")
    return entry.name, entry.value.parsed(parse_keep, None)


def _read_archive(value: Value) -> ArchivePlace | None:
    return value.parsed(lambda text: parse_archive(text, value.place), None)


@dataclass(frozen=True, slots=True)
class Retention:
    """What `playhead gc` may delete: nothing, unless a time to keep it is given."""

    hot_s: float = key(
        "72h",
        parse_kept,
        "With [an archive](archive.md): how long an ended run, or a restored copy, stays in the store.",
        name="hot",
    )
    keep_s: float | None = key(
        "forever",
        parse_keep,
        "[`playhead gc`](retention.md) deletes runs that ended longer ago.",
        name="keep",
    )
    labels: _Labels = custom(
        _read_labels,
        _NO_LABELS,
        "The same by label: a duration or `forever`; the longest applies.",
        shown="{}",
        shape={"type": "object", "additionalProperties": SCALAR},
        example="incident: forever\nci: 7d",
    )
    archive: ArchivePlace | None = custom(
        _read_archive,
        None,
        "A folder, or `s3://BUCKET/PREFIX`, optionally with `?endpoint_override=URL&region=NAME`, without "
        "credentials.",
        shown="null",
        shape=SCALAR,
    )
