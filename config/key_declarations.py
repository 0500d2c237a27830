"""How a key of the configuration is declared: once, with its default, what reads it, and a sentence.

A section is a frozen dataclass whose fields are made by the functions below. The loader reads it by `read_section`;
`config/playhead.yaml`, `config/playhead.schema.json` and the tables of `docs/configuration.md` are written from the same
declarations (`just reference`). `docs/extending.md` says how to add a key.

Rules between the keys of one section are in its method `check`, which is given the section as it was written.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

import yaml

from .document import MAX_BYTES, Fields, Value
from .parse_values import parse_place

_PATH = re.compile(r"([^.\[]+)(\[\d+\])?(?:\.(.+))?")
SCALAR: Mapping[str, Any] = {"type": ["string", "number", "boolean"]}
"""JSON Schema of what is read as a text, whatever YAML takes it for."""


@dataclass(frozen=True, slots=True)
class Key:
    """All that is known of a key, besides its place."""

    name: str
    """In the file; empty where it is the field's."""
    read: Callable[[Fields, str], Any]
    sentence: str
    """Markdown; links start from the folder of `docs/configuration.md`."""
    default: str
    """As in the file; empty where there is none."""
    shape: Mapping[str, Any]
    """JSON Schema of what may be given."""
    section: type | None = None
    """The section that its value, or each entry of its value, is."""
    example: str = ""
    """YAML of a value of it, for the shipped file."""
    required: bool = False
    parse: Callable[[str], Any] = str
    """What reads the text of a flag for it, or each text."""


class _Checked(Protocol):
    def check(self, given: Fields) -> None:
        """Note what is wrong between the keys of a section; given: as they were written."""


def keys_of(section: type) -> Mapping[str, tuple[str, Key]]:
    """Give the keys of a section by name, each with its field, in the order of the file."""
    found: dict[str, tuple[str, Key]] = {}
    for one in fields(section):
        key = one.metadata["key"]
        found[key.name or one.name] = one.name, key
    return found


def show_form(section: type, path: str) -> str:
    """Show in one line what a value of a key looks like: the first of its example, or its keys; empty for a plain one.

    path: names from the section down, with a dot between them, and the places of items in brackets.
    """
    place = _PATH.fullmatch(path)
    found = keys_of(section).get(place[1]) if place is not None else None
    if place is None or found is None:
        return ""
    name, below, key = place[1], place[3] or "", found[1]
    if place[2] is None and below:
        form = show_form(key.section, below) if key.section is not None else ""
        return form and f"{name}: {{{form}}}"
    if key.example:
        shown = yaml.safe_dump(
            _choose_example(key, re.split(r"[.\[]", below)[0]),
            default_flow_style=True,
            sort_keys=False,
            width=MAX_BYTES,
        )
        return f"{name}: {shown.strip()}"
    if key.section is None:
        return ""
    inside = keys_of(key.section)
    forms = [
        (show_form(key.section, one) if inner.section is None else "") or f"{one}: ..."
        for one, (_, inner) in [*inside.items()][:3]
    ]
    return f"{name}: {{{', '.join(forms)}}}"


def _choose_example(key: Key, wanted: str) -> Any:
    """Choose the first entry of an example, with what it needs; of one with the wanted key, that alone and what it is about."""
    tree = yaml.safe_load(key.example)
    if not isinstance(tree, list):
        return dict([*tree.items()][:1])
    for item in tree:
        if isinstance(item, dict) and wanted in item:
            return [{name: item[name] for name in item if name in ("match", wanted)}]
    if key.section is None or not isinstance(tree[0], dict):
        return tree[:1]
    known = keys_of(key.section)
    needed = [name for name in tree[0] if name in known and known[name][1].required]
    # What a rule does may be any of several keys, none of which it needs: the first is shown.
    shown = {*needed, *[*tree[0]][: max(2, len(needed))]}
    return [{name: value for name, value in tree[0].items() if name in shown}]


def find_places(section: type, name: str) -> list[str]:
    """Find the sections inside one, none in a list, that have a key of a name; each by its dotted path."""
    found = []
    for at, (_, key) in keys_of(section).items():
        if key.section is None or not _is_plain_section(key):
            continue
        if name in keys_of(key.section):
            found.append(at)
        found += [f"{at}.{one}" for one in find_places(key.section, name)]
    return found


def _is_plain_section(key: Key) -> bool:
    """Say whether the value of a key is one section, and not a list, or something short for one."""
    return key.section is not None and ref(key.section) in (key.shape, *key.shape.get("anyOf", ()))


def read_section[T](section: type[T], value: Value) -> T:
    """Read a mapping with the keys of a section; a key that is not given has its default."""
    keys = keys_of(section)
    given = value.fields(*keys)
    made = section(**{at: key.read(given, name) for name, (at, key) in keys.items()})
    if hasattr(made, "check"):
        cast(_Checked, made).check(given)
    return made


class _Unset:
    """No other value to begin with than the default."""


def declare[T](
    read: Callable[[Fields, str], T],
    default: T,
    sentence: str,
    *,
    shown: str = "",
    shape: Mapping[str, Any] = SCALAR,
    name: str = "",
    section: type | None = None,
    example: str = "",
    parse: Callable[[str], Any] = str,
) -> T:
    """Declare a key that is read in a way of its own; the functions below are shorter.

    read: given all keys of the section as written, and the name of this one.
    shown: the default, as in the file.
    """
    metadata = {"key": Key(name, read, sentence, shown, shape, section, example, parse=parse)}
    if isinstance(default, dict):
        return cast(T, field(default_factory=dict, metadata=metadata))
    return field(default=default, metadata=metadata)


def key[T](
    default: str,
    parse: Callable[[str], T],
    sentence: str,
    *,
    start: T | type[_Unset] = _Unset,
    name: str = "",
) -> T:
    """Declare a key with a text.

    start: what it is where it is not given, if no text says so; then without a `default`.
    """
    first = parse(default) if isinstance(start, type) else start

    def read(given: Fields, at: str) -> T:
        return given.parsed(at, parse, first)

    shape = shape_of(parse)
    return declare(read, first, sentence, shown=default, shape=shape, name=name, parse=parse)


def optional[T](
    parse: Callable[[str], T], sentence: str, *, name: str = "", shown: str = "null"
) -> T | None:
    """Declare a key with a text, or without a value."""

    def read(given: Fields, at: str) -> T | None:
        return given.optional(at, parse)

    shape = _or_null(shape_of(parse))
    return declare(read, None, sentence, shown=shown, shape=shape, name=name, parse=parse)


def custom[T](
    convert: Callable[[Value], T],
    default: T,
    sentence: str,
    *,
    shown: str,
    shape: Mapping[str, Any],
    name: str = "",
    section: type | None = None,
    example: str = "",
) -> T:
    """Declare a key whose value is read by a function; without a value it has its default."""

    def read(given: Fields, at: str) -> T:
        return given.section(at, convert, default)

    more = {"name": name, "section": section, "example": example}
    return declare(read, default, sentence, shown=shown, shape=_or_null(shape), **more)  # type: ignore[arg-type]  # of these types


def path(default: str, sentence: str) -> Path:
    """Declare a key with a path, which starts from the folder of the file."""

    def read(given: Fields, at: str) -> Path:
        place = given.value.place
        return given.parsed(at, place, place(default))

    return declare(read, Path(default), sentence, shown=default, parse=parse_place)


def optional_path(sentence: str) -> Path | None:
    """Declare a key with a path, or without a value."""

    def read(given: Fields, at: str) -> Path | None:
        return given.optional(at, given.value.place)

    shape = _or_null(SCALAR)
    return declare(read, None, sentence, shown="null", shape=shape, parse=parse_place)


def texts[T](parse: Callable[[str], T], sentence: str, *, example: str = "") -> tuple[T, ...]:
    """Declare a key with a list of texts."""
    read, shape = _texts(parse), _list(parse)
    return declare(read, (), sentence, shown="[]", shape=shape, example=example, parse=parse)


def entries[T](kind: type[T], sentence: str, *, example: str = "") -> tuple[T, ...]:
    """Declare a key with a list of rules."""

    def read(given: Fields, at: str) -> tuple[T, ...]:
        return given.each(at, lambda value: read_section(kind, value))

    shape = _or_null({"type": "array", "items": ref(kind)})
    return declare(read, (), sentence, shown="[]", shape=shape, section=kind, example=example)


def section[T](kind: type[T], sentence: str = "", *, example: str = "") -> T:
    """Declare a key with a section of its own."""
    convert = partial(read_section, kind)
    return custom(
        convert, kind(), sentence, shown="{}", shape=ref(kind), section=kind, example=example
    )


def required[T](
    parse: Callable[[str], T], missing: str, stand_in: T, sentence: str
) -> Mapping[str, Key]:
    """Give the metadata of a key that has to be given.

    missing: what to say where it is not.
    stand_in: for one at fault, so that reading goes on; never in a configuration that is returned.
    """

    def read(given: Fields, at: str) -> T:
        return given.required(at, parse, missing, stand_in)

    return {"key": Key("", read, sentence, "", shape_of(parse), required=True)}


def required_path(missing: str, sentence: str) -> Mapping[str, Key]:
    """Give the metadata of a path that has to be given."""

    def read(given: Fields, at: str) -> Path:
        return given.required(at, given.value.place, missing, Path())

    return {"key": Key("", read, sentence, "", SCALAR, required=True)}


def required_texts(
    parse: Callable[[str], object], missing: str, sentence: str
) -> Mapping[str, Key]:
    """Give the metadata of a list of texts that has to be given."""

    def read(given: Fields, at: str) -> tuple[object, ...]:
        value = given.given.get(at)
        if value is None or value.blank:
            given.value.missing(at, missing)
        return _texts(parse)(given, at)

    return {"key": Key("", read, sentence, "", _list(parse), required=True)}


def shape_of(parse: Callable[[str], Any]) -> Mapping[str, Any]:
    """Give the JSON Schema of the texts that a parser takes, as far as it says."""
    return getattr(parse, "shape", SCALAR)


def ref(kind: type) -> Mapping[str, Any]:
    """Refer to the JSON Schema of a section."""
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _texts[T](parse: Callable[[str], T]) -> Callable[[Fields, str], tuple[T, ...]]:
    # One at fault is None, in a configuration that is never returned.
    return lambda given, at: given.texts(at, parse, cast(T, None))


def _list(parse: Callable[[str], Any]) -> Mapping[str, Any]:
    return _or_null({"type": "array", "items": shape_of(parse)})


def _or_null(shape: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"anyOf": [shape, {"type": "null"}]}
