"""One change at one place of a request, and how that place is called: for the promise that nothing stale is served.

Every mutation is of a place that counts. What follows from it (a renamed key is one that is gone and one that came)
is named by the first place in the order of the request.
"""

import json
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from playhead.tape.canonical.canonical_request import Rules
from playhead.tape.exchange import Request

from .dialects import load_sample, make_request, sample_names

_SHORT_LIST = (b"accept", b"range", b"if-none-match", b"if-modified-since", b"x-amz-target")
_RPC = ("id", "progressToken", "requestId")
"""Places of JSON-RPC that a client counts up: they do not count."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A changed request, and what the change should be called."""

    kind: str
    request: Request
    named: Callable[[str], bool]
    expected: str
    """The place, for people."""


def realistic_requests() -> list[Request]:
    """Requests of each sort of body, JSON written by Python."""
    found = []
    for name in sample_names():
        request = load_sample(name)[0]
        try:
            body = json.dumps(json.loads(request.body)).encode()
        except ValueError:
            body = request.body
        # One sample's recorder wrote a value as Python shows it.
        headers = tuple(
            (key, value.removeprefix(b"b'").rstrip(b"'")) for key, value in request.headers
        )
        found.append(replace(request, headers=headers, body=body))
    octets = bytes(range(256)) * 3
    return [
        *found,
        make_request(
            "https://api.stripe.com/v1/refunds?expand=charge&expand=customer",
            b"charge=ch_1007&amount=4900&metadata%5Bcase%5D=a+b&reason=&metadata%5Bby%5D=caf%C3%A9",
            {"content-type": "application/x-www-form-urlencoded"},
        ),
        make_request("https://api.openai.com/v1/files", MULTIPART, {"content-type": _MULTIPART}),
        make_request("https://s3.test/bucket/key?x-id=PutObject", octets, {"content-type": "image/png"}, "PUT"),
        make_request("https://logs.test/raw", b"aaaa\naaab\n", {"content-type": "text/plain"}),
        make_request(
            "https://search.test/v1/find?q=refund+policy&page=2&lang=en&flag",
            headers={"accept": "text/html, */*;q=0.5", "range": "bytes=0-99"},
            method="GET",
        ),
        make_request(
            "https://dynamodb.test/",
            {"TableName": "t", "Key": {"id": {"S": "7"}}, "Limit": 10, "Ratio": 0.25, "All": [1, [2, 3], {}]},
            {"content-type": "application/x-amz-json-1.0", "x-amz-target": "DynamoDB_2012.GetItem"},
        ),
    ]  # fmt: skip


_MULTIPART = "multipart/form-data; boundary=abc123"
_PARTS = (
    b'content-disposition: form-data; name="purpose"\r\n\r\nassistants',
    b'content-disposition: form-data; name="file"; filename="a.txt"\r\n\r\nline one\nline two\n',
    b'content-disposition: form-data; name="note"\r\n\r\n',
)
MULTIPART = b"".join(b"--abc123\r\n" + part + b"\r\n" for part in _PARTS) + b"--abc123--\r\n"


@st.composite
def mutations(draw: st.DrawFn, request: Request, rules: Rules) -> Mutation:
    """Draw one mutation of a request."""
    ways: list[Callable[[st.DrawFn, Request], Mutation]] = [_endpoint, _query, _header]
    content = (request.header(b"content-type") or b"").partition(b";")[0]
    if request.body:
        if b"json" in content or (not content and request.body[:1] in b"{["):
            # Bodies hold nearly all of what may change.
            ways += [lambda draw, request: _json(draw, request, rules)] * 12
        elif content == b"application/x-www-form-urlencoded":
            ways += [_form] * 6
        elif content.startswith(b"multipart/"):
            ways += [_multipart] * 4
        else:
            ways += [_bytes] * 6
    return draw(st.sampled_from(ways))(draw, request)


def is_within(told: str, place: str) -> bool:
    """Say whether a place is another one, or inside it: `$.a[1]` is not inside `$.a[10]`, nor `$.ab` inside `$.a`."""
    return told == place or told.startswith((f"{place}.", f"{place}["))


def _exactly(kind: str, request: Request, place: str) -> Mutation:
    return Mutation(kind, request, place.__eq__, place)


def _changed_text(draw: st.DrawFn, text: str) -> str:
    """Change a text in one of the ways that are easily taken for the same."""
    ways = [
        text + " ",
        text + "x",
        text[:-1],
        text.swapcase(),
        text.replace(" ", "  ", 1),
        text.replace("\n", "\r\n", 1),
        unicodedata.normalize("NFD", text),
        f"\u200b{text}",
    ]
    if text:
        at = draw(st.integers(0, len(text) - 1))
        ways += [text[:at] + draw(st.sampled_from("aZ0é\u4e16\x00\U0001f600")) + text[at + 1 :]]
    return draw(st.sampled_from([way for way in ways if way != text]))


# ---- the request line and head ---------------------------------------------------------------------------


def _endpoint(draw: st.DrawFn, request: Request) -> Mutation:
    path, _, query = request.target.partition("?")
    other = draw(
        st.sampled_from([f"{path}/", f"{path}x", f"/{path}", path.swapcase(), f"{path}%2F"])
    )
    rest = f"?{query}" if query else ""
    ways = [
        _exactly("method", replace(request, method="PATCH"), "method"),
        _exactly("scheme", replace(request, scheme="http" if request.scheme == "https" else "https"), "scheme"),
        _exactly("host", replace(request, host=f"x{request.host}"), "host"),
        _exactly("port", replace(request, port=request.port + 1), "host"),
    ]  # fmt: skip
    if other != path:
        ways.append(_exactly("path", replace(request, target=other + rest), "path"))
    return draw(st.sampled_from(ways))


def _query(draw: st.DrawFn, request: Request) -> Mutation:
    path, _, query = request.target.partition("?")
    pairs = query.split("&") if query else []
    at = draw(st.integers(0, len(pairs)))
    if at == len(pairs) or draw(st.booleans()):
        name = draw(st.sampled_from(["new", "q", "page", "%7Bx%7D"]))
        made, kind = [*pairs[:at], f"{name}=added-{len(pairs)}", *pairs[at:]], "query insert"
    else:
        name, _, value = pairs[at].partition("=")
        if draw(st.booleans()):
            made, kind = pairs[:at] + pairs[at + 1 :], "query remove"
        else:
            made, kind = [*pairs[:at], f"{name}={value}x", *pairs[at + 1 :]], "query value"
    target = path + ("?" + "&".join(made) if made else "")
    return _exactly(kind, replace(request, target=target), f"query {name}")


def _header(draw: st.DrawFn, request: Request) -> Mutation:
    name = draw(st.sampled_from(_SHORT_LIST))
    there = [at for at, (key, _) in enumerate(request.headers) if key.lower() == name]
    fields = list(request.headers)
    if not there:
        fields.insert(draw(st.integers(0, len(fields))), (name, b"added"))
    elif draw(st.booleans()):
        del fields[there[0]]
    else:
        fields[there[0]] = (name, fields[there[0]][1] + b"x")
    return _exactly("header", replace(request, headers=tuple(fields)), f"header {name.decode()}")


# ---- bodies ----------------------------------------------------------------------------------------------


def _json(draw: st.DrawFn, request: Request, rules: Rules) -> Mutation:
    tree = json.loads(request.body)
    places = [
        place
        for place in _walk(tree, ())
        if not _left_out(place, tree, rules.of(request).masks.json)
    ]
    place = draw(st.sampled_from(places))
    kind, changed, named, expected = draw(st.sampled_from(_ways(draw, tree, place)))
    return Mutation(
        f"json {kind}", replace(request, body=json.dumps(changed).encode()), named, expected
    )


_Path = tuple[str | int, ...]
_Way = tuple[str, Any, Callable[[str], bool], str]


def _walk(value: Any, path: _Path) -> Iterator[_Path]:
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _walk(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _walk(item, (*path, at))


def _left_out(path: _Path, tree: Any, masks: tuple[tuple[str | int | None, ...], ...]) -> bool:
    rpc = "jsonrpc" in (tree[0] if isinstance(tree, list) and tree else tree)
    if rpc and path and (path[-1] in _RPC or path[-1] == "jsonrpc"):
        return True
    return any(
        len(path) >= len(mask)
        and all(step in (None, at) for step, at in zip(mask, path, strict=False))
        for mask in masks
    )


def _text(path: _Path) -> str:
    steps = [
        f"[{step}]" if isinstance(step, int) else f".{step}" if step.replace("-", "_").isidentifier() or step.replace("-", "_").replace("_", "a").isalnum() else f"['{step}']"
        for step in path
    ]  # fmt: skip
    return f"body ${''.join(steps)}"


def _ways(draw: st.DrawFn, tree: Any, path: _Path) -> list[_Way]:
    value = _at(tree, path)
    ways: list[_Way] = []
    if not isinstance(value, dict | list):
        ways.append(_at_place("leaf", tree, path, _other(draw, value)))
    elif path:
        ways.append(_at_place("replace", tree, path, None))
    if isinstance(value, dict):
        added = {**value, "added_key": 1}
        ways.append(
            ("insert key", _with(tree, path, added), _text((*path, "added_key")).__eq__, "added")
        )
        for key in list(value)[:1]:
            renamed = {(f"{name}_x" if name == key else name): item for name, item in value.items()}
            place = _text((*path, key))
            if key not in (*_RPC, "jsonrpc"):
                ways.append(("rename key", _with(tree, path, renamed), place.__eq__, place))
    if isinstance(value, list):
        at = draw(st.integers(0, len(value)))
        longer = [*value[:at], "put in, as nothing else here is", *value[at:]]
        place = _text((*path, at))
        ways.append(("insert item", _with(tree, path, longer), place.__eq__, place))
        ways += _order(draw, tree, path, value)
    if path and isinstance(path[-1], str):
        parent = dict(_at(tree, path[:-1]))
        del parent[path[-1]]
        place = _text(path)
        ways.append(("remove key", _with(tree, path[:-1], parent), place.__eq__, place))
    return ways


def _order(draw: st.DrawFn, tree: Any, path: _Path, items: list[Any]) -> Iterator[_Way]:
    if items:
        at = draw(st.integers(0, len(items) - 1))
        shorter = items[:at] + items[at + 1 :]
        # Of two equal neighbours, which one was removed cannot be seen.
        same = {
            _text((*path, one))
            for one in range(len(items))
            if items[:one] + items[one + 1 :] == shorter
        }
        yield "remove item", _with(tree, path, shorter), same.__contains__, _text((*path, at))
    if len(items) > 1:
        at = draw(st.integers(0, len(items) - 2))
        swapped = [*items[:at], items[at + 1], items[at], *items[at + 2 :]]
        place = _text((*path, at))
        if json.dumps(swapped, sort_keys=True) != json.dumps(items, sort_keys=True):
            # Both items moved: a place in either is the swap's.
            yield (
                "swap items",
                _with(tree, path, swapped),
                lambda told: is_within(told, place),
                place,
            )


def _at_place(kind: str, tree: Any, path: _Path, value: Any) -> _Way:
    place = _text(path)
    return kind, _with(tree, path, value), place.__eq__, place


def _other(draw: st.DrawFn, value: Any) -> Any:
    match value:
        case bool():
            return draw(st.sampled_from([not value, int(value), str(value).lower()]))
        case None:
            return draw(st.sampled_from([False, 0, "", "null", [], {}]))
        case int():
            return draw(
                st.sampled_from([value + 1, -value - 1, float(value), str(value), value + 10**30])
            )
        case float():
            return draw(st.sampled_from([value + 0.5, str(value), value * 1.0000000001 + 1e-12]))
        case _:
            return _changed_text(draw, value)


def _at(tree: Any, path: _Path) -> Any:
    for step in path:
        tree = tree[step]
    return tree


def _with(tree: Any, path: _Path, value: Any) -> Any:
    if not path:
        return value
    inner = _with(tree[path[0]], path[1:], value)
    if isinstance(tree, dict):
        return {key: inner if key == path[0] else item for key, item in tree.items()}
    return [inner if at == path[0] else item for at, item in enumerate(tree)]


def _form(draw: st.DrawFn, request: Request) -> Mutation:
    pairs = request.body.decode().split("&")
    at = draw(st.integers(0, len(pairs) - 1))
    name, _, value = pairs[at].partition("=")
    place = f"form {name}"
    ways = [
        ("form value", [*pairs[:at], f"{name}={value}%20", *pairs[at + 1 :]], place),
        ("form remove", pairs[:at] + pairs[at + 1 :], place),
        ("form rename", [*pairs[:at], f"{name}_x={value}", *pairs[at + 1 :]], place),
        ("form insert", [*pairs[:at], "added=1", *pairs[at:]], "form added"),
    ]
    if at:
        ways.append(
            ("form order", [*pairs[: at - 1], pairs[at], pairs[at - 1], *pairs[at + 1 :]], "form")
        )
    kind, made, place = draw(st.sampled_from(ways))
    return _exactly(kind, replace(request, body="&".join(made).encode()), place)


def _multipart(draw: st.DrawFn, request: Request) -> Mutation:
    parts = request.body.split(b"--abc123\r\n")
    number = draw(st.integers(1, len(_PARTS)))
    part = _PARTS[number - 1]
    at = draw(st.integers(0, len(part)))
    changed = part[:at] + b"#" + part[at:]
    parts[number] = parts[number].replace(part, changed, 1)
    made = b"--abc123\r\n".join(parts)
    return _exactly("multipart", replace(request, body=made), f"body part {number}")


def _bytes(draw: st.DrawFn, request: Request) -> Mutation:
    body = request.body
    at = draw(st.integers(0, len(body) - 1))
    made = draw(
        st.sampled_from(
            [
                body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :],
                body[:at] + body[at + 1 :],
                body[:at] + b"\xff" + body[at:],
                body + b"\n",
            ]
        )
    )
    pairs = zip(body, made, strict=False)
    first = next(
        (at for at, (one, other) in enumerate(pairs) if one != other), min(len(body), len(made))
    )
    return _exactly("bytes", replace(request, body=made), f"body byte {first}")
