"""Ask the redactor about the cases of secrets_formats.yaml, secrets_benign.yaml and secrets_hostile.yaml.

    uv run python -m playhead.tests.adversary.secret_search formats|benign|hostile [ID ...]

prints each case that is not as its file says.
"""

import base64
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from playhead.config.parse_values import PERSONAL_KINDS
from playhead.config.schema import RedactRule
from playhead.tape.exchange import Headers, Request, Response
from playhead.tape.redaction.placeholders.placeholder import unescape
from playhead.tape.redaction.redactor import Redactor
from playhead.tape.redaction.search import Kind
from playhead.tests.adversary.secret_bodies import body
from playhead.tests.adversary.secret_recipes import Made, expand, hostile, learned, read
from playhead.tests.adversary.secret_texts import filled

TYPES = {
    "json": b"application/json",
    "json-spaced": b"application/json",
    "json-ascii": b"application/json",
    "json-in-json": b"application/json",
    "form": b"application/x-www-form-urlencoded",
    "multipart": b"multipart/form-data; boundary=cases",
    "ndjson": b"application/x-ndjson",
    "sse": b"text/event-stream",
    "xml": b"application/xml",
}
KINDS = {
    "": Kind(),
    "form": Kind(form=True),
    "events": Kind(stream=True, answer=True),
    "lines": Kind(lines=True, answer=True),
}
"""What is known of a hostile text."""
_RUN = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")
_PROMPT = {"json": {"messages": [{"role": "user", "content": "{text}"}]}}


@cache
def places() -> dict[str, dict[str, Any]]:
    """Give the places of secrets_places.yaml by their ids."""
    return {place["id"]: place for place in read("places")["passing"]}


def stored(redactor: Redactor, side: str, build: Mapping[str, Any], text: str) -> bytes:
    """Give what is stored of a text in a place: head and body."""
    headers: list[tuple[bytes, bytes]] = []
    target, data = "/v1/a", b""
    if "header" in build:
        name, value = build["header"]
        whole = text.startswith("http") or "; Path" in text  # the text is the field
        value = text if whole else value.replace("{text}", text)
        headers.append((name.encode(), value.encode()))
    elif "query" in build:
        name, value = build["query"]
        target = f"/v1/a?{name}={value.replace('{text}', text)}"
    elif "userinfo" in build:
        target = f"https://{build['userinfo'].replace('{text}', text)}@api.test/v1/a"
    elif "path" in build:
        target = build["path"].replace("{text}", text)
    else:
        kind = build.get("type") or next((TYPES[name] for name in build if name in TYPES), None)
        if kind:
            headers.append((b"content-type", kind.encode() if isinstance(kind, str) else kind))
        data = b"".join(body(build, text))
    return ask(redactor, side, tuple(headers), target, data)


def ask(redactor: Redactor, side: str, headers: Headers, target: str, data: bytes) -> bytes:
    """Give what is stored of a request or an answer."""
    if side == "answer":
        answer = Response(200, b"OK", "HTTP/1.1", headers, data, 1)
        kept, _, _ = redactor.response(answer)
        return b"\n".join([value for _, value in kept.headers] + [kept.body or b""])
    request = Request("POST", "https", "api.test", 443, target, "HTTP/1.1", headers, data)
    new, _ = redactor.request(request)
    return b"\n".join([new.target.encode(), *[value for _, value in new.headers], new.body or b""])


def decoded(text: bytes) -> list[bytes]:
    """Give a text, and what it means."""
    found = [text, unescape(text), unquote_to_bytes(text)]
    plain = text
    for _ in range(4):
        plain = (
            plain.replace(b"\\\\", b"\\")
            .replace(b'\\"', b'"')
            .replace(b"\\/", b"/")
            .replace(b"\\n", b"\n")
        )
        found.append(plain)
    for one in (found[1], found[-1]):
        for run in _RUN.findall(one):
            for offset in range(4):
                part = run[offset:].rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
                part = part[: len(part) - (len(part) % 4 == 1)]
                found.append(base64.b64decode(part + b"=" * (-len(part) % 4)))
    return found


def left(made: Made, texts: list[bytes]) -> list[str]:
    """Give the parts of values that are still in stored texts."""
    every = b"\n".join([one for text in texts for one in decoded(text)])
    return [part for part in made.secrets if part.encode() in every]


def formats(full: bool, names: list[str]) -> Iterator[tuple[str, str]]:
    """Give name and position of each case that is left in the clear."""
    cases = read("formats")
    for case in cases["cases"]:
        if names and case["id"] not in names:
            continue
        for number, made in enumerate(expand(case)):
            for position, texts in stored_texts(made, cases["positions"], full or not number):
                if left(made, texts):
                    yield made.name, position


def stored_texts(
    made: Made, positions: list[Mapping[str, Any]], full: bool
) -> Iterator[tuple[str, list[bytes]]]:
    """Give what is stored of a case, by position.

    full: at all of them.
    """
    case = made.case
    if "steps" in case:
        redactor = Redactor(b"k" * 32)
        yield (
            "steps",
            [
                stored(redactor, _side(places()[place]), places()[place]["build"], text)
                for place, text in made.steps
            ],
        )
        return
    plain_value = (
        case["kind"] == "by format"
        and case.get("text", "{value}") == "{value}"
        and "wrap" not in case
    )
    if plain_value:
        for position in positions if full else positions[:1]:
            text = filled(position["text"], made.values)
            yield str(position["id"]), [_ask(text)]
    else:
        yield "text", [_ask(made.text)]
    if case["where"] == "prompt":
        yield "prompt", [stored(Redactor(b"k" * 32), "request", _PROMPT, made.text)]


def _side(place: Mapping[str, Any]) -> str:
    return "answer" if place["side"] == "answer" else "request"


def _ask(text: str) -> bytes:
    if re.match(r"[A-Za-z0-9+.-]+://\S+\Z", text):
        return ask(Redactor(b"k" * 32), "request", (), "/go?u=" + text, b"") + ask(
            Redactor(b"k" * 32), "request", ((b"referer", text.encode()),), "/", b""
        )
    header = re.match(r"([A-Za-z0-9-]+): (.+)\Z", text)
    if header and " " not in header[1]:
        return ask(
            Redactor(b"k" * 32), "request", ((header[1].encode(), header[2].encode()),), "/", b""
        )
    kind: tuple[tuple[bytes, bytes], ...] = (
        (b"content-type", b"application/x-www-form-urlencoded"),
    )
    is_form = re.match(r"[A-Za-z_]+=\S+&\S+\Z", text)
    return ask(Redactor(b"k" * 32), "request", kind if is_form else (), "/", text.encode())


def personal(case: Mapping[str, Any]) -> Iterator[tuple[Made, str, list[bytes]]]:
    """Give each value of a kind of personal data, where it was put, and what is stored under a rule that names its kind."""
    rules = [RedactRule(pii=(case["pii"],))]
    for made in expand(case):
        text = json.dumps({"content": made.text}) if made.text[:1] != "{" else made.text
        fields = ((b"content-type", b"application/json"),)
        for position, target, data in (
            ("body", "/", text.encode()),
            ("raw body", "/", made.text.encode()),
            ("query", f"/?q={quote(made.values['value'])}", b""),
        ):
            redactor = Redactor(b"k" * 32, rules)
            yield made, position, ask(redactor, "request", fields, target, data).splitlines()


def benign(names: list[str]) -> Iterator[tuple[str, str]]:
    """Give name and change of each case that is not stored as it came."""
    for case in read("benign")["cases"]:
        if names and case["id"] not in names:
            continue
        for made in expand(case):
            place = places().get(case["place"], {"side": "both"})
            build = case.get("build") or place["build"]
            side = case.get("side") or _side(place)
            text = filled(case.get("text", "{value}"), made.values)
            value = text if "build" not in case else made.values["value"]
            kept = stored(Redactor(b"k" * 32), side, _filled(build, value), text)
            same = stored(_Same(), side, _filled(build, value), text)
            if kept != same:
                at = next(
                    (n for n, (a, b) in enumerate(zip(kept, same, strict=False)) if a != b), 0
                )
                yield made.name, f"{same[max(0, at - 40) : at + 60]!r}"


def _filled(build: Mapping[str, Any], value: str) -> Mapping[str, Any]:
    text = json.dumps(build)
    return (
        json.loads(text.replace("{value}", json.dumps(value)[1:-1])) if "{value}" in text else build
    )


class _Same(Redactor):
    """Changes nothing, to see what would be stored."""

    def __init__(self) -> None:
        super().__init__(b"k")

    def request(self, request: Any) -> Any:
        return request, ()

    def response(self, response: Any) -> Any:
        return response, (), ()


def hostile_times(
    size: int | None, names: list[str], later: ThreadPoolExecutor
) -> Iterator[tuple[str, float]]:
    """Give each hostile text and the seconds that its search takes, of CPU of the thread that waits for it.

    later: takes the compiles, as in a proxy.
    """
    Redactor.prepare()
    for case in read("hostile")["cases"]:
        if names and case["id"] not in names:
            continue
        rules = [RedactRule(pii=PERSONAL_KINDS)] if case.get("pii") else []
        redactor = Redactor(b"k" * 32, rules, later=later.submit)
        for value in learned(case):
            redactor._learned.add(value.encode())
        later.submit(len, ()).result()
        text, kind = hostile(case, size=size), KINDS[case.get("kind", "")]
        redactor.text(b"warm" * 9)
        began = time.thread_time()
        searched = redactor._search.search(text, kind)
        took = time.thread_time() - began
        assert searched is None or len(searched.data) == len(text)
        yield case["id"], took


def main() -> None:
    """Print what is not as it should be."""
    which, names = sys.argv[1], sys.argv[2:]
    count = 0
    if which == "hostile":
        with ThreadPoolExecutor(1) as later:
            for name, took in hostile_times(None, names, later):
                if took > 0.1 or names:
                    print(f"{name}: {took:.3f} s", flush=True)
        return
    for name, what in formats(full=True, names=names) if which == "formats" else benign(names):
        count += 1
        print(name, what)
    print(count)


if __name__ == "__main__":
    main()
