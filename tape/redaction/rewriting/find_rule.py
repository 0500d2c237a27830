"""Name the rule by which a stored value is replaced: its place in the configuration, or a shipped format's kind."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from ....config.schema import KeepRule, RedactRule
from ..credential_fields import CONFIGURED, SECRET
from ..finding.format_table import FORMATS, expand
from ..learned import Learned
from ..placeholders.placeholder import Placeholders, unescape
from ..search import Kind, Search, see_framing

_PLACED = {"header": "header", "trailer": "header", "interim": "header", "query": "query"}
"""Words of a place, and the key of a rule that names it."""


def rule_name(index: int, rule: RedactRule) -> str:
    """Give the name of a rule of the configuration. A pattern is left out: it may say what is to be hidden."""
    for key in ("header", "query", "json", "form"):
        if name := getattr(rule, key):
            return f"redact[{index}] {key} {name}"
    return f"redact[{index}] {'path' if rule.path else 'pattern'}"


@cache
def _formats() -> list[tuple[str, re.Pattern[bytes]]]:
    """Give what a whole value of each shipped format matches, where the format has a form of its own."""
    found = []
    for row in FORMATS:
        then = expand(row.then)
        begins = [re.escape(one) for one in row.begins if one[-1] not in "/="]
        if begins or row.head:
            head = f"(?:{'|'.join(begins)})" if begins else ""
            found.append((row.name, re.compile(f"{head}(?:{then})".encode())))
    return found


def _format_name(value: bytes) -> str:
    """Name the shipped format of a value; `secret` where its place or its name says that it is one."""
    return next((name for name, form in _formats() if form.fullmatch(value)), SECRET)


class RuleNames:
    """Finds the rules that apply to a text."""

    def __init__(self, rules: Sequence[RedactRule], kept: Sequence[KeepRule]) -> None:
        """Take the rules of a configuration."""
        self._named = [(rule_name(index, rule), rule) for index, rule in enumerate(rules)]
        self._solo = [
            (name, Search(_Blanks(), Learned(), [rule], kept))
            for name, rule in self._named
            if rule.json or rule.form or rule.pattern
        ]
        self._all = Search(_Blanks(), Learned(), rules, kept)

    def find(
        self, place: str, kinds: Iterable[str], data: bytes, known: Mapping[bytes, str]
    ) -> list[str]:
        """Name the rules by which kinds of secrets are found in a text, each once.

        place: where the text is, as a redaction names it.
        known: names of rules by the values that they have shown elsewhere.
        """
        found: dict[str, None] = {}
        for kind in kinds:
            if kind == CONFIGURED:
                found |= dict.fromkeys(self._configured(place, data))
            elif kind == SECRET:
                found |= dict.fromkeys(self._anywhere(place, data, known))
            else:
                found[kind] = None
        return list(found)

    def kinds(self, data: bytes, kind: Kind = Kind()) -> list[tuple[str, bytes]]:  # noqa: B008, frozen
        """Give the kind and the bytes of each secret that the rules find in a text by itself."""
        searched = self._all.search(data, kind)
        spans = searched.spans if searched is not None else ()
        return [(one.kind, data[one.at : one.at + one.size]) for one in spans]

    def _configured(self, place: str, data: bytes) -> list[str]:
        words = place.split(".", 2)
        key = _PLACED.get(words[1]) if len(words) > 2 else None
        if key is not None:
            named = [n for n, rule in self._named if getattr(rule, key).lower() == words[2]]
            if named:
                return named
        kind = see_framing(Kind(lines=True), data)  # it may be said in pieces
        found = [name for name, search in self._solo if search.search(data, kind) is not None]
        if not found:  # in a URL
            lower = data.lower()
            found = [
                n for n, rule in self._named if rule.query and rule.query.lower().encode() in lower
            ]
        return found or [name for name, rule in self._named if rule.path] or [CONFIGURED]

    def _anywhere(self, place: str, data: bytes, known: Mapping[bytes, str]) -> list[str]:
        plain = unescape(data)
        found = [name for value, name in known.items() if value in data or value in plain]
        if found:
            return found
        named = dict[str, None]()
        inside = self.kinds(data)
        # Of any kind but this one, the rules depend on nothing but the kind: they are asked once.
        for kind, value in dict.fromkeys((k, v if k == SECRET else b"") for k, v in inside):
            if kind == SECRET:
                named[_format_name(value)] = None
            else:
                named |= dict.fromkeys(self.find(place, (kind,), data, known))
        return list(named) or [_format_name(data)]


class _Blanks(Placeholders):
    """Replaces values by zeros: what they are is not asked."""

    def __init__(self) -> None:
        super().__init__(b"blank")

    def of(self, value: bytes) -> bytes:
        return bytes(len(value))
