"""Look at what is stored of the cases of secrets_formats.yaml with two scanners of secrets: the rules of gitleaks, and detect-secrets.

    uv run python -m playhead.tests.adversary.secret_scanners [--all]

prints each finding of a scanner in an export, and how many cases each finds before redaction.

gitleaks_rules.json has the rules of gitleaks as data; its licence is in it. They run on RE2, as they do there. What is encoded is
decoded once, as gitleaks does by default up to five times: base64 that is text, hexadecimal and percent-encoding.
"""

import asyncio
import base64
import binascii
import json
import math
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import re2

from playhead.store import Store
from playhead.tests.support.exchanges import make_exchange, make_response, write_run
from playhead.timeline.formats.tape_file import export_tape, import_tape

from .secret_recipes import FOLDER, Made, expand, read
from .secret_search import stored_texts

_RUN = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(r"(?:[0-9a-f]{2}){16,}|(?:[0-9A-F]{2}){16,}")


class _Rule(NamedTuple):
    name: str
    regex: Any
    keywords: tuple[str, ...]
    entropy: float
    group: int
    allowed: tuple["_Allowed", ...]


class _Allowed(NamedTuple):
    target: str
    regexes: tuple[Any, ...]
    stopwords: tuple[str, ...]

    def holds(self, secret: str, match: str, line: str) -> bool:
        text = {"match": match, "line": line}.get(self.target, secret)
        lower = secret.lower()
        return any(one.search(text) for one in self.regexes) or any(
            word in lower for word in self.stopwords
        )


@cache
def _rules() -> tuple[tuple[_Rule, ...], _Allowed]:
    told = json.loads((FOLDER / "gitleaks_rules.json").read_text("utf-8"))
    rules = tuple(
        _Rule(
            one["id"],
            _compile(one["regex"]),
            tuple(word.lower() for word in one.get("keywords", ())),
            one.get("entropy", 0),
            one.get("secretGroup", 0),
            tuple(map(_allowed, one.get("allowlists", ()))),
        )
        for one in told["rules"]
    )
    return rules, _allowed(told["allowlist"])


def _allowed(told: dict[str, Any]) -> _Allowed:
    regexes = tuple(map(_compile, told.get("regexes", ())))
    return _Allowed(told.get("regexTarget", ""), regexes, tuple(told.get("stopwords", ())))


def _compile(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 64 << 20
    return re2.compile(pattern, options)


def find_with_gitleaks(text: str) -> Iterator[tuple[str, str]]:
    """Give the rule and the value of each finding in a text, and in what is encoded in it."""
    seen = set()
    for one in (text, *_decoded(text)):
        for found in _find(one):
            if found not in seen:
                seen.add(found)
                yield found


def _find(text: str) -> Iterator[tuple[str, str]]:
    rules, everywhere = _rules()
    lower = text.lower()
    for rule in rules:
        if rule.keywords and not any(word in lower for word in rule.keywords):
            continue
        for found in rule.regex.finditer(text):
            match = found[0].strip("\n")
            again = rule.regex.search(match)
            groups = again.groups() if again is not None else ()
            secret = match
            if groups:
                secret = groups[rule.group - 1] if rule.group else next(filter(None, groups), match)
            if rule.entropy and entropy(secret) <= rule.entropy:
                continue
            begin = text.rfind("\n", 0, found.start()) + 1
            end = text.find("\n", found.end())
            line = text[begin : end if end >= 0 else len(text)]
            if not any(one.holds(secret, match, line) for one in (everywhere, *rule.allowed)):
                yield rule.name, secret


def entropy(text: str) -> float:
    """Give Shannon's entropy of the characters of a text, in bits."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


def _decoded(text: str) -> Iterator[str]:
    parts = []
    for run in _RUN.findall(text):
        plain = run.rstrip("=").translate({ord("-"): "+", ord("_"): "/"})
        try:
            data = base64.b64decode(plain + "=" * (-len(plain) % 4))
        except binascii.Error:
            continue
        if data.isascii() and data.decode().isprintable():
            parts.append(data.decode())
    for run in _HEX.findall(text):
        data = bytes.fromhex(run)
        if data.isascii() and data.decode().isprintable():
            parts.append(data.decode())
    if "%" in text:
        parts.append(unquote(text))
    yield from parts


@cache
def _plugins() -> list[Any]:
    from detect_secrets.settings import default_settings, get_plugins

    with default_settings():
        return list(get_plugins())


def find_with_detect_secrets(text: str) -> Iterator[tuple[str, str]]:
    """Give the kind and the value of each finding of a text, line by line, by all detectors and without its filters."""
    seen = set()
    for line in text.split("\n"):
        for plugin in _plugins():
            for found in plugin.analyze_line(filename="export.jsonl", line=line, line_number=1):
                one = found.type, found.secret_value or ""
                if one not in seen:
                    seen.add(one)
                    yield one


SCANNERS: dict[str, Callable[[str], Iterable[tuple[str, str]]]] = {
    "gitleaks": find_with_gitleaks,
    "detect-secrets": find_with_detect_secrets,
}


class Scanned(NamedTuple):
    """A finding of a scanner in what is stored of a case."""

    scanner: str
    rule: str
    case: str
    value: str
    told: tuple[str, ...]
    """Parts of secrets that the value has."""


def export_cases(folder: Path, *, full: bool) -> tuple[bytes, list[tuple[Made, str]]]:
    """Put what is stored of every case into a run and export it; give the tape file, and the texts that are read out of it.

    full: all values, and all positions of each.
    """
    found = []
    for case in read("formats")["cases"]:
        for number, made in enumerate(expand(case)):
            if full or not number:
                for _, kept in stored_texts(made, read("formats")["positions"], full):
                    found += [(made, text) for text in kept]
    exchanges = [
        make_exchange(at, response=make_response(text)) for at, (_, text) in enumerate(found, 1)
    ]
    data = bytearray()
    with Store.open(folder) as store:
        run = asyncio.run(write_run(store, "cases", exchanges))
        export_tape(store, run, data.extend, lambda _done, _of: None)
    texts = []
    with Store.open(folder.with_name("other")) as other:
        import_tape(other, lambda: [bytes(data)], 1 << 30, lambda *_: None)
        for (made, _), exchange in zip(
            found, other.exchanges.all(other.runs.get("cases")), strict=True
        ):
            assert exchange.response is not None
            texts.append((made, exchange.response.body.decode("utf-8", "replace")))
    return bytes(data), texts


def scan(texts: Iterable[tuple[Made, str]]) -> Iterator[Scanned]:
    """Give what the scanners report of texts of cases."""
    for made, text in texts:
        for name, find in SCANNERS.items():
            for rule, value in find(text):
                told = tuple(part for part in made.secrets if part in value)
                yield Scanned(name, rule, made.case["id"], value, told)


def main() -> None:
    """Print each rule that reports something, with one value, and how many cases each scanner knows before redaction."""
    full = "--all" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        data, texts = export_cases(Path(folder) / "store", full=full)
    for name, find in SCANNERS.items():
        print(f"{name}: {len(list(find(data.decode('latin-1'))))} findings in the file")
    counts = Counter[tuple[str, str]]()
    examples: dict[tuple[str, str], Scanned] = {}
    for one in scan(texts):
        counts[one.scanner, one.rule] += 1
        examples.setdefault((one.scanner, one.rule), one)
    for key, count in counts.most_common():
        print(*key, count, examples[key].case, examples[key].value[:60])
    cases = {made.name: made for made, _ in texts}
    for name, find in SCANNERS.items():
        known = [made for made in cases.values() if any(True for _ in find(made.text))]
        print(f"{name}: knows {len(known)} of {len(cases)} before redaction")


if __name__ == "__main__":
    main()
