"""A YAML text as values that know their place.

1. Nothing is guessed. A scalar is its text, and the schema says what it means: YAML 1.1 would read
   `off`, `no`, `1_0` and `12:30` as something else. Only nothing, `~` and a plain `null` are no value.
   Tags and merge keys are refused, anchors and aliases are read.
2. One fault does not hide the next: what is wrong is noted with its place and reading goes on.
3. Bounded: nesting, and the size with every alias counted as often as it is used, are checked while
   the text is parsed, so that no later step can be blown up.

Source: the marks of PyYAML's composed nodes; JSON's number grammar, RFC 8259 section 6.
"""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import yaml

from .errors import ConfigError, Fault
from .parse_values import parse_place, show, suggest
from .yaml_slips import find_slip

MAX_BYTES = 1 << 20
"""Of a configuration's text."""
MAX_DEPTH = 32
_NODE = 64
"""What one value weighs besides its characters."""
_MAX_WEIGHT = 2 * MAX_BYTES
_MAX_TEXT = 200
"""Characters of what PyYAML says: it quotes names of any length."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_JSON_WORDS = {word: word.lower() for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NO_BLANK = re.compile(r"([A-Za-z_][\w-]*):(?!//)(\S.*)")
_SHORT = 40
"""Characters of a value that is shown where it belongs."""
_PLACES = 3
_PLAIN_KEY = re.compile(r"[\w.*~@-]{1,60}")


class _Mark(Protocol):
    """A place in the text, counted from 0: what marks of PyYAML's two parsers have in common."""

    line: int
    column: int


class Faults:
    """Every fault found in one text so far."""

    def __init__(self, name: str, base: Path | None = None) -> None:
        """Find none yet in a text of this name, whose relative paths start from `base`; None: the working folder."""
        self._name = name
        self.base = base
        self.show_form: Callable[[str], str] = lambda path: ""
        """Shows what a value looks like, by its path; empty where nobody knows."""
        self.find_places: Callable[[str], list[str]] = lambda name: []
        """Finds the sections that have a key of a name, each by its dotted path; for a key in a wrong place."""
        self._found: list[tuple[int, int, Fault]] = []

    def add(self, line: int, column: int, path: str, text: str) -> None:
        """Note a fault; line and column from 0, as YAML's marks count them."""
        where = f"{self._name}:{line + 1}:{column + 1}"
        self._found.append((line, column, Fault(where, path, text)))

    def raise_any(self) -> None:
        """Raise ConfigError with all faults in file order, if there is one."""
        if self._found:
            ordered = sorted(self._found, key=lambda found: found[:2])
            raise ConfigError(tuple(fault for _, _, fault in ordered))


class Value:
    """One value of the text; a method that cannot read it notes a fault and gives the default."""

    def __init__(self, node: yaml.Node, path: str, faults: Faults) -> None:
        self.node = node
        self.path = path
        self._faults = faults

    @property
    def empty(self) -> bool:
        """Whether there is no value: nothing, `~` or a plain `null`."""
        return self._plain in _NULLS

    @property
    def blank(self) -> bool:
        """Whether there is no value, or one with nothing in it."""
        return self.empty or not self.node.value

    @property
    def is_mapping(self) -> bool:
        """Whether there are entries to read."""
        return isinstance(self.node, yaml.MappingNode)

    def peek(self, key: str, faults: Faults) -> "Value | None":
        """Find the value of a key of a mapping; what is wrong with it is noted in `faults`."""
        for key_node, value_node in self.node.value if self.is_mapping else ():
            if isinstance(key_node, yaml.ScalarNode) and key_node.value == key:
                return Value(value_node, _joined(self.path, key), faults)
        return None

    @property
    def line(self) -> int:
        """The line it begins on, from 1."""
        return int(self.node.start_mark.line) + 1

    def fault(self, text: str) -> None:
        """Note what is wrong here."""
        mark = self.node.start_mark
        self._faults.add(mark.line, mark.column, self.path, text)

    def _fault_kind(self, expected: str) -> None:
        """Note that this is of another kind; show the form that is read here, or that a blank is missing behind a colon."""
        plain = self._plain or ""
        if expected == "a mapping" and (found := _NO_BLANK.fullmatch(plain)):
            self.fault(
                f"{show(plain)} has no blank after its colon; expected {found[1]}: {found[2]}"
            )
            return
        form = self._faults.show_form(self.path)
        self.fault(f"expected {expected}, found {self._kind}{form and f'; as in: {form}'}")

    def missing(self, key: str, text: str) -> None:
        """Note what is missing here, unless this is no mapping, which has been noted."""
        if self.is_mapping or self.empty:
            Value(self.node, _joined(self.path, key), self._faults).fault(text)

    def text(self) -> str | None:
        """Give a scalar's text; None, with a fault, for anything else."""
        if self.empty:
            self.fault("has no value; give one, or remove the key")
        elif isinstance(self.node, yaml.ScalarNode):
            return str(self.node.value)
        else:
            self.fault(f"expected text, found {self._kind}")
        return None

    def parsed[T](self, parse: Callable[[str], T], default: T) -> T:
        """Give what `parse` makes of the text; its ValueError becomes the fault."""
        text = self.text()
        if text is None:
            return default
        try:
            return parse(text)
        except ValueError as error:
            self.fault(str(error))
            return default

    def place(self, text: str) -> Path:
        """Parse a path, which starts from where relative paths of this text do. Raises: ValueError."""
        path = parse_place(text)
        return path if self._faults.base is None else self._faults.base / path

    def items(self, expected: str = "a list") -> "list[Value]":
        """Give the items of a list; no value is an empty list.

        expected: what to say of anything else.
        """
        if isinstance(self.node, yaml.SequenceNode):
            return [
                Value(node, f"{self.path}[{index}]", self._faults)
                for index, node in enumerate(self.node.value)
            ]
        if not self.empty:
            self._fault_kind(expected)
        return []

    def entries(self, known: tuple[str, ...] | None = None) -> "list[Entry]":
        """Give the entries of a mapping, each key once; no value is an empty mapping.

        known: the keys there are; any other is a fault. None where keys are free.
        """
        entries: dict[str, Entry] = {}
        if not self.is_mapping and not self.empty:
            self._fault_kind("a mapping")
        for key_node, value_node in self.node.value if self.is_mapping else ():
            if (entry := self._entry(key_node, value_node)) is None:
                continue
            if entry.name in entries:
                first = entries[entry.name]
                line = first.key.node.start_mark.line + 1
                advice = _advise_on_two(entry.name, first.value.node, value_node)
                entry.key.fault(f"duplicate key, first on line {line}; {advice}")
                continue
            entries[entry.name] = entry
            if known is not None and entry.name not in known:
                hint = self._find_hint(entry, known)
                entry.key.fault(f"unknown key; {hint}")
        return list(entries.values())

    def _find_hint(self, entry: "Entry", known: tuple[str, ...]) -> str:
        """Say where a key belongs that is in another section, or which one is meant."""
        node = entry.value.node
        given = (
            node.value if isinstance(node, yaml.ScalarNode) and len(node.value) < _SHORT else "..."
        )
        places = self._faults.find_places(entry.name)[:_PLACES]
        is_plural = bool(self.path) and {entry.name.removesuffix("s"), f"{entry.name}s"} & {*known}
        if places and not is_plural:
            forms = [
                f"{': {'.join([*one.split('.'), entry.name])}: {given}{'}' * (one.count('.') + 1)}"
                for one in places
            ]
            return f"it belongs to a section: {' or '.join(forms)}"
        return suggest(entry.name, known).strip() or f"known here: {', '.join(known)}"

    def fields(self, *known: str) -> "Fields":
        """Give a mapping with fixed keys."""
        given = {entry.name: entry.value for entry in self.entries(known) if entry.name in known}
        return Fields(self, given)

    def find(self, path: Sequence[str | int]) -> "Value":
        """Find the value that these names and indices lead to, or the last on the way there."""
        found = self
        for step in path:
            if isinstance(step, int):
                inside = found.items() if isinstance(found.node, yaml.SequenceNode) else []
                below = inside[step : step + 1]
            else:
                entries = found.entries() if found.is_mapping else []
                below = [one.value for one in entries if one.name == step]
            if not below:
                break
            found = below[0]
        return found

    def json(self) -> str:
        """Render as compact JSON.

        Plain scalars are null, true, false or a number, kept as written, exactly where JSON would read
        them so; everything else is a string.
        """
        node = self.node
        if isinstance(node, yaml.SequenceNode):
            return f"[{','.join(item.json() for item in self.items())}]"
        if isinstance(node, yaml.MappingNode):
            members = (f"{_quoted(name)}:{value.json()}" for name, _, value in self.entries())
            return f"{{{','.join(members)}}}"
        plain = self._plain
        if plain is None:
            return _quoted(node.value)
        if plain in _NULLS:
            return "null"
        return _JSON_WORDS.get(plain) or (
            plain if _JSON_NUMBER.fullmatch(plain) else _quoted(plain)
        )

    @property
    def _plain(self) -> str | None:
        """A scalar's text where it stands without quotes and is no block."""
        node = self.node
        return node.value if isinstance(node, yaml.ScalarNode) and not node.style else None

    @property
    def _kind(self) -> str:
        if isinstance(self.node, yaml.SequenceNode):
            return "a list"
        if self.is_mapping or self.empty:
            return "a mapping" if self.is_mapping else "nothing"
        plain = self._plain or ""
        if plain in _JSON_WORDS or _JSON_NUMBER.fullmatch(plain):
            return f"the word {plain}" if plain in _JSON_WORDS else "a number"
        return "text"

    def _entry(self, key: yaml.Node, value: yaml.Node) -> "Entry | None":
        if not isinstance(key, yaml.ScalarNode):
            wrong = "expected text as a key, found a list or mapping"
        elif key.value == "<<" and not key.style:
            wrong = "merge keys are not read; write the keys out, or use an alias as a value"
        else:
            path = _joined(self.path, key.value)
            faults = self._faults
            return Entry(key.value, Value(key, path, faults), Value(value, path, faults))
        Value(key, self.path, self._faults).fault(wrong)
        return None


class Entry(NamedTuple):
    """One key of a mapping and its value; the path of both is the key's."""

    name: str
    key: Value
    value: Value


class Fields:
    """A mapping with fixed keys; a key that is not given has its default."""

    def __init__(self, value: Value, given: dict[str, Value]) -> None:
        self.value = value
        self.given = given

    def parsed[T](self, key: str, parse: Callable[[str], T], default: T) -> T:
        """Give what `parse` makes of a key's text."""
        return self.given[key].parsed(parse, default) if key in self.given else default

    def optional[T](self, key: str, parse: Callable[[str], T]) -> T | None:
        """Give what `parse` makes of a key's text; None where the key has no value."""
        value = self.given.get(key)
        return None if value is None or value.empty else value.parsed(lambda t: parse(t), None)

    def required[T](self, key: str, parse: Callable[[str], T], missing: str, default: T) -> T:
        """Give what `parse` makes of a key's text; missing: what to say where there is none."""
        value = self.given.get(key)
        if value is None:
            self.value.missing(key, missing)
            return default
        if value.empty:
            value.fault(missing)
            return default
        return value.parsed(parse, default)

    def section[T](self, key: str, convert: Callable[[Value], T], default: T) -> T:
        """Give what `convert` makes of a key's value; no value is the default."""
        value = self.given.get(key)
        return default if value is None or value.empty else convert(value)

    def items(self, key: str) -> list[Value]:
        """Give the items of a key's list; none where the key is not given."""
        return self.given[key].items() if key in self.given else []

    def required_items(self, key: str, expected: str) -> list[Value]:
        """Give the items of a list that has to be there; expected: such a list, with an example."""
        value = self.given.get(key)
        if value is None or value.empty or value.json() == "[]":
            self.value.missing(key, f"missing; expected {expected}")
            return []
        return value.items(expected)

    def each[T](self, key: str, convert: Callable[[Value], T]) -> tuple[T, ...]:
        """Give what `convert` makes of each item of a key's list."""
        return tuple(map(convert, self.items(key)))

    def texts[T](self, key: str, parse: Callable[[str], T], default: T) -> tuple[T, ...]:
        """Give what `parse` makes of each text of a key's list."""
        return self.each(key, lambda item: item.parsed(parse, default))


def parse_document(text: str, faults: Faults) -> Value | None:
    """Parse a text; None where it holds no value.

    Raises: ConfigError where it is not YAML or exceeds a bound.
    """
    loader = None
    try:
        loader = _Bounded(text)
        node = loader.get_single_node()
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        column = len(before) - before.rfind("\n") - 1
        wrong = f"not YAML: the character U+{ord(text[error.position]):04X} is not allowed"
        faults.add(before.count("\n"), column, "", wrong)
    except _Refused as error:
        _note(faults, error.mark, str(error))
    except yaml.MarkedYAMLError as error:
        wrong = "; ".join(part for part in (error.context, error.problem) if part)
        wrong = f"not YAML: {wrong[:_MAX_TEXT]}; {find_slip(text, error)}"
        _note(faults, error.problem_mark or error.context_mark, wrong)
    except (ValueError, OverflowError):
        # PyYAML hands an escape above U+10FFFF, or a huge version in %YAML, to chr() and int().
        wrong = "not YAML: a number in an escape or directive is out of range"
        _note(faults, loader.get_mark() if loader else None, wrong)
    faults.raise_any()
    value = None if node is None else Value(node, "", faults)
    return None if value is None or value.empty else value


def parse_shipped(text: str, faults: Faults) -> Value | None:
    """Parse a text that is shipped with Playhead: faster where libyaml is there, and without the bounds of `parse_document`."""
    try:
        node = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return parse_document(text, faults)
    return None if node is None else Value(node, "", faults)


class _Refused(Exception):
    """What is YAML, but not read here, and the event that it begins with."""

    def __init__(self, text: str, event: yaml.Event) -> None:
        super().__init__(text)
        self.mark = event.start_mark


class _Bounded(yaml.SafeLoader):
    """A composer of nodes that stops as soon as a bound is passed."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._weight = 0
        self._weights: dict[int, int] = {}
        """By the id of a finished node, with everything below it."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose one node and what stands below it."""
        event = self.peek_event()  # type: ignore[no-untyped-call]  # as in the stubs
        self._check(event)
        before = self._weight
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(event, yaml.AliasEvent):
            if id(node) not in self._weights:
                raise _Refused("an alias is inside its own anchor", event)
            self._weight += self._weights[id(node)]
        else:
            self._weight += _NODE + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
            self._weights[id(node)] = self._weight - before
        if self._weight > _MAX_WEIGHT:
            raise _Refused("too many values, aliases counted as often as they are used", event)
        return node

    def _check(self, event: yaml.Event) -> None:
        if self._depth >= MAX_DEPTH:
            raise _Refused(f"nested deeper than {MAX_DEPTH}", event)
        if getattr(event, "tag", None) is not None:
            raise _Refused("tags are not read; remove it, and quote text", event)
        if isinstance(event, yaml.ScalarEvent) and _SURROGATE.search(event.value):
            raise _Refused("half of a surrogate pair is no character", event)


def _advise_on_two(name: str, first: yaml.Node, second: yaml.Node) -> str:
    """Say how two values of one key become one: nobody is to drop entries for the sake of a key."""
    for kind, what in ((yaml.SequenceNode, "items"), (yaml.MappingNode, "keys")):
        if isinstance(first, kind) and isinstance(second, kind):
            return f"put the {what} of both under one {name[:_SHORT]!r}"
    return "keep one of them"


def _note(faults: Faults, mark: _Mark | None, text: str) -> None:
    faults.add(mark.line if mark else 0, mark.column if mark else 0, "", text)


def _joined(path: str, name: str) -> str:
    shown = name if _PLAIN_KEY.fullmatch(name) else show(name)
    return f"{path}.{shown}" if path else shown


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
