"""The licences of all that Playhead depends on, here, extras included: a table, and 1 where one is not allowed.

Needs nothing but Python, so that it can be run in an environment without the tests: `python licences.py`. A licence is what the
package declares: an SPDX expression, else its classifiers, else its text of a few words, else the text of MIT in its files.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

_ALLOWED = re.compile(
    r"\b(MIT|MIT-0|MIT-CMU|BSD|0BSD|Apache|ISC|ISCL|PSF|Python|Unlicense|Unlicence|CC0|Zlib|ZPL|OLDAP|HPND|Public Domain)\b"
    r"|Apache|BSD|ZPL",
    re.IGNORECASE,
)
_WEAK_COPYLEFT = re.compile(r"\bMPL\b|MPL-2|Mozilla|LGPL|Lesser General", re.IGNORECASE)
"""Allowed for packages that are used unchanged, as Python imports them."""
_STRONG = re.compile(
    r"(?<!L)GPL|AGPL|Affero|(?<!Lesser )General Public|SSPL|Commons Clause|BUSL", re.IGNORECASE
)
_MIT = "Permission is hereby granted, free of charge, to any person obtaining a copy"
_REQUIREMENT = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")


def find_licence(package: Distribution) -> str:
    """Give what a package says of its licence; empty where it says nothing."""
    told = package.metadata
    if expression := told.get("License-Expression"):
        return expression
    named = [
        one.rpartition(" :: ")[2]
        for one in told.get_all("Classifier") or ()
        if one.startswith("License :: ") and one != "License :: OSI Approved"
    ]
    text = (told.get("License") or "").strip()
    return ", ".join(named) or text.partition("\n")[0][:60] or _recognise(package)


def _recognise(package: Distribution) -> str:
    """Give the licence whose text a package brings, where that is all that it says."""
    for name in package.metadata.get_all("License-File") or ():
        text = package.read_text(f"licenses/{name}") or ""
        if _MIT in " ".join(text.split()):
            return "MIT"
    return ""


def _normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def judge(licence: str) -> str:
    """Say why a licence is not allowed; empty where it is."""
    if not licence:
        return "no licence is declared"
    # Of several that one may choose from, one is enough.
    choices = re.split(r"\bOR\b|;", licence)
    if any(_is_allowed(choice) for choice in choices):
        return ""
    return "this licence is not on the list"


def _is_allowed(licence: str) -> bool:
    if _STRONG.search(licence) and not _WEAK_COPYLEFT.search(licence):
        return False
    return bool(_ALLOWED.search(licence) or _WEAK_COPYLEFT.search(licence))


def find_closure(name: str) -> Iterator[Distribution]:
    """Yield the packages that one needs, with its extras, as far as they are installed; each once, by name."""
    seen: dict[str, Distribution] = {}
    waiting = [name]
    while waiting:
        wanted = _normalise(waiting.pop())
        if wanted in seen:
            continue
        try:
            seen[wanted] = distribution(wanted)
        except PackageNotFoundError:  # of another system, or of an extra that nobody asked for
            continue
        for requirement in seen[wanted].requires or ():
            found = _REQUIREMENT.match(requirement)
            is_extra = "extra ==" in requirement
            if found is not None and (wanted == "playhead" or not is_extra):
                waiting.append(found[0])
    yield from (seen[one] for one in sorted(seen) if one != name)


def main() -> int:
    """Print the table, and on stderr what is wrong."""
    wrong = 0
    print("| package | version | licence |\n|---|---|---|")
    for package in find_closure("playhead"):
        name, licence = package.metadata["Name"], find_licence(package)
        print(f"| {name} | {package.version} | {licence} |")
        if why := judge(licence):
            print(f"{name} {package.version}: {licence!r}: {why}", file=sys.stderr)
            wrong = 1
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
