"""Synthesize an answer to an effect that is not on the tape, following recorded answers.

Rules:

1. The answer recorded for the nearest request is the pattern: same method, authority, shape of path and operation.
   One that failed, is not whole, lies in a file or was made up is none.
2. A value that the recorded answer repeats from its request is taken from the request that is asked now: from the
   same place of it. Where several answers were recorded, it has to be so in each.
3. What names the thing that the effect makes is named anew, after the request that is asked: same request, same
   name, in the same form (`re_1Qx…`, a UUID, digits). With one recorded answer that is its `id`; with several, also
   each id that differs between them.
4. Everything else stays as recorded: times, states, sums. What a server would compute is not known.
5. What comes out is valid against the schema of all recorded answers (`infer_json_schema.py`); a value that would not be stays
   as recorded. What is no JSON stays as recorded whole, ids of JSON-RPC aside.
6. Never without the mark (`refusal.stub_headers`), and never with what is true of one answer alone: cookies, entity
   tags, digests and signatures are left out.

Pure, and bounded: a few answers, each looked at once.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from blake3 import blake3

from ..canonical.target_overrides import names_of
from ..exchange import Exchange, Headers, Request, RequestClass, Seq, VerdictKind
from ..matching.rewrite_json_rpc_ids import IdRewriting
from ..policy.refusal import is_grpc
from ..records.content_coding import undo_coding
from .infer_json_schema import Schema, infer, is_valid, member
from .operation import operation, read_tree

MAX_MODELS = 16
"""Recorded answers that are looked at."""
_MAX_BODY = 64 * 1024
"""Bytes of an answer beyond which it is given as recorded."""
_MAX_PLACES = 20_000
_MAX_SWAPS = 64
_MAX_SAME = 16
"""Places of a request with the same value that are looked at."""
_MAX_READ = 256 * 1024
"""Bytes of all answers that are compared."""
_ECHO_CHARS = 8
"""Characters of a text of the request that is looked for inside texts of the answer."""
_NAME_CHARS = 4
_DEEP = 8
"""Steps to the name of what was made, in a result of JSON-RPC; elsewhere 3."""

UNTRUE = frozenset(
    b"set-cookie etag last-modified digest content-digest repr-digest content-md5 signature signature-input"
    b" content-length transfer-encoding connection keep-alive trailer upgrade alt-svc age".split()
)
"""Fields of a recorded answer that are not true of another one, or that follow from the connection."""

_OWN = frozenset({"id", "_id", "uuid", "guid"})
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_ID = re.compile(r"[A-Za-z0-9_.:~-]{4,200}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:$|[T ])|\d\d:\d\d")
_TAIL = re.compile(r"[A-Za-z0-9]+$")

_Step = str | int
_Path = tuple[_Step, ...]


class Model(NamedTuple):
    """A recorded exchange that shows what an answer looks like."""

    seq: Seq
    exchange: Exchange


class Made(NamedTuple):
    """An answer that was made up."""

    status: int
    headers: Headers
    body: bytes
    after: tuple[Seq, ...]
    """The recorded exchanges after which it was made, the nearest first."""
    changed: bool
    """Whether its body is another than the one recorded."""


def is_model(exchange: Exchange, asked: Request) -> bool:
    """Say whether a recorded exchange shows what an answer to an effect looks like.

    exchange: with its class of now.
    """
    recorded, response = exchange.request, exchange.response
    return (
        response is not None
        and 200 <= response.status < 400
        and response.complete
        and response.spilled is None
        and exchange.fault is None
        and exchange.verdict is VerdictKind.RECORDED
        and exchange.request_class is RequestClass.EFFECT
        and (recorded.method, recorded.scheme) == (asked.method, asked.scheme)
        and recorded.authority.lower() == asked.authority.lower()
        and names_of(recorded) == names_of(asked)
        and not is_grpc(asked)  # whose outcome stands in trailers
        and operation(recorded) == operation(asked)
    )


def imitate(models: Sequence[Model], asked: Request, seed: bytes) -> Made:
    """Make up an answer to a request after recorded ones.

    models: at least one, the nearest first.
    asked: redacted.
    seed: of the request; the same one gives the same answer.
    """
    seqs = tuple(model.seq for model in models[:MAX_MODELS])
    first = models[0].exchange
    response = first.response
    assert response is not None
    body = _plain(first)
    tree = _parse(body) if body is not None else None
    if tree is None or isinstance(tree, str | int | float | bool):
        return _as_recorded(first, asked, seqs[:1])
    assert body is not None
    pairs = [_Pair(_places(first.request), tree)]
    left = _MAX_READ - len(body)
    for model in models[1:MAX_MODELS]:
        other = _plain(model.exchange)
        left -= len(other or b"")
        if left < 0:
            break
        found = _parse(other) if other is not None else None
        if type(found) is type(tree):
            pairs.append(_Pair(_places(model.exchange.request), found))
    try:
        made = _Imitation(pairs, _places(asked), seed, first.request)
        new = _fold(made.tree())
        tree = _fold(tree)
    except RecursionError:
        return _as_recorded(first, asked, seqs[:1])
    changed = new != tree
    text = json.dumps(new, ensure_ascii=False, separators=(",", ":"))
    fields = tuple(
        (name, made.swap(value.decode("latin-1")).encode("latin-1", "replace"))
        for name, value in response.headers
        if name.lower() not in UNTRUE and name.lower() != b"content-encoding"
    )
    out = text.encode("utf-8", "surrogatepass") if changed else body
    return Made(response.status, fields, out, seqs, changed)


def _as_recorded(exchange: Exchange, asked: Request, seqs: tuple[Seq, ...]) -> Made:
    played, spelling = IdRewriting().answer(asked, exchange)
    response = played.response
    assert response is not None
    body = spelling.take(response.body) if spelling is not None else response.body
    fields = tuple(field for field in response.headers if field[0].lower() not in UNTRUE)
    changed = exchange.response is None or body != exchange.response.body
    return Made(response.status, fields, body, seqs, changed)


class _Pair(NamedTuple):
    """A recorded request by its places, and its answer."""

    asked: dict[_Path, Any]
    answer: Any


class _Imitation:
    """One answer in the making."""

    def __init__(
        self, pairs: list[_Pair], asked: dict[_Path, Any], seed: bytes, first: Request
    ) -> None:
        self._pairs = pairs
        self._asked = asked
        self._seed = seed
        self._noun = _noun(first.path)
        self._schema = infer([pair.answer for pair in pairs])
        self._rpc = isinstance(pairs[0].answer, dict) and "jsonrpc" in pairs[0].answer
        self._known: dict[tuple[str, str], list[_Path]] = {}
        for path, value in pairs[0].asked.items():
            for key in _keys(value):
                places = self._known.setdefault(key, [])
                if len(places) < _MAX_SAME:
                    places.append(path)
        self._names: dict[str, Any] = {}
        """What is named anew, by what it was."""
        self._left = _MAX_PLACES
        self._name(pairs[0].answer, ())
        self._swaps = self._find_swaps()
        words = sorted(self._swaps, key=len, reverse=True)
        self._word = re.compile("|".join(map(re.escape, words))) if words else None

    def tree(self) -> Any:
        """Give the answer's tree."""
        self._left = _MAX_PLACES
        return self._build(self._pairs[0].answer, (), self._schema)

    def swap(self, text: str) -> str:
        """Put what is asked and named now into a text."""
        if self._word is None:
            return text
        return self._word.sub(lambda found: self._swaps[found[0]], text)

    def _build(self, value: Any, path: _Path, schema: Schema) -> Any:
        self._left -= 1
        if self._left < 0:
            return value
        if isinstance(value, _Told):
            inside = self._build(dict(value), path, schema)
            return _Told(value.text, inside) if isinstance(inside, dict) else value
        if self._rpc and path == ("id",):
            return self._asked.get(("body", "id"), value)
        source = self._source(value, path)
        if source is not None:
            new = _in_the_form_of(self._asked[source], value) if source in self._asked else value
            if is_valid(new, schema):
                return new
        if isinstance(value, dict):
            return {
                name: self._build(item, (*path, name), member(schema, name))
                for name, item in value.items()
            }
        if isinstance(value, list):
            inner = member(schema, 0)
            return [self._build(item, (*path, index), inner) for index, item in enumerate(value)]
        if source is None and self._is_own(value, path):
            return self._names[_text(value)]
        return self.swap(value) if isinstance(value, str) else value

    def _name(self, value: Any, path: _Path) -> None:
        """Find what is named anew."""
        self._left -= 1
        if self._left < 0 or self._source(value, path) is not None:
            return
        if isinstance(value, dict):
            for name, item in value.items():
                self._name(item, (*path, name))
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self._name(item, (*path, index))
        elif self._is_own(value, path):
            self._names[_text(value)] = rename(value, self._seed)

    def _source(self, value: Any, path: _Path) -> _Path | None:
        """Find the place of the request that an answer repeats."""
        if self._rpc and path == ("id",):
            return ("body", "id")
        if value is None or value in ("", [], {}):
            return None
        found = [place for key in _keys(value) for place in self._known.get(key, ())]
        found.sort(key=lambda place: not _same_name(place, path))
        for place in found:
            if self._holds(place, path, _is_telling(place, path, value)):
                return place
        return None

    def _holds(self, place: _Path, path: _Path, telling: bool) -> bool:
        """Say whether each recorded answer repeats this place of its request.

        telling: whether one is enough.
        """
        seen: set[str] = set()
        for pair in self._pairs:
            there, value = _at(pair.answer, path)
            if not there:
                continue
            if place not in pair.asked or not set(_keys(value)) & set(_keys(pair.asked[place])):
                return False
            seen.add(_text(value))
        return telling or len(seen) > 1

    def _is_own(self, value: Any, path: _Path) -> bool:
        """Say whether a value names what the effect has made."""
        if not path or isinstance(value, bool) or not isinstance(value, str | int):
            return False
        name = str(path[-1]).lower()
        own = name in _OWN or name.removesuffix("id").rstrip("_") == self._noun
        if isinstance(value, str) and not _is_id(value):
            return False
        if any(word in name for word in ("token", "secret", "key", "password")):
            return False  # what stands there is a placeholder
        others = [
            item for pair in self._pairs[1:] for there, item in [_at(pair.answer, path)] if there
        ]
        if any(other != value for other in others):
            return own or (isinstance(value, str) and all(map(_is_id, map(str, others))))
        # One answer, or the same in all: what all share names something else.
        near = len(path) <= (_DEEP if self._rpc else 3)
        return own and near and not others and (isinstance(value, str) or value > 0)

    def _find_swaps(self) -> dict[str, str]:
        """Give what is written over inside texts: names of what is made, and long texts of the request."""
        swaps = {old: str(new) for old, new in self._names.items() if len(old) >= _NAME_CHARS + 2}
        for place, value in self._pairs[0].asked.items():
            new = self._asked.get(place)
            if isinstance(value, str) and len(value) >= _ECHO_CHARS and isinstance(new, str):
                swaps.setdefault(value, new)
            if len(swaps) >= _MAX_SWAPS:
                break
        return swaps


def rename(value: str | int, seed: bytes) -> str | int:
    """Give another id of the same form: its prefix and alphabet stay, and the length of what is long."""
    drawn = _draw(seed, _text(value))
    if isinstance(value, int):
        return int(_redraw("9" * max(9, len(str(value))), drawn)) if value > 0 else value
    if _UUID.fullmatch(value):
        new = _redraw(value, drawn)
        return new[:14] + value[14] + new[15:19] + value[19] + new[20:]
    tail = _TAIL.search(value)
    if tail is None:
        return value
    return value[: tail.start()] + _redraw(tail[0], drawn)


def _draw(seed: bytes, text: str) -> Iterator[int]:
    made = blake3(text.encode("utf-8", "surrogatepass"), key=blake3(seed).digest())
    return iter(made.digest(length=2048))


_DIGITS, _LOWER = "0123456789", "abcdefghijklmnopqrstuvwxyz"
_HEX = _DIGITS + "abcdef"


def _redraw(text: str, drawn: Iterator[int]) -> str:
    """Draw each character again, from the same alphabet; the first of a number is no nought."""
    if text.isdigit():
        return "".join(
            _DIGITS[next(drawn) % 10] if at else _DIGITS[1 + next(drawn) % 9]
            for at in range(len(text))
        )
    lower = text.lower()
    is_hex = len(text) >= 8 and not set(lower) - set(_HEX) - {"-"}
    new = []
    for char in text:
        if not char.isascii() or not char.isalnum():
            new.append(char)
            continue
        letters = _HEX if is_hex else _DIGITS if char.isdigit() else _LOWER
        one = letters[next(drawn) % len(letters)]
        new.append(one.upper() if char.isupper() or (is_hex and text.isupper()) else one)
    return "".join(new)


def _plain(exchange: Exchange) -> bytes | None:
    """Give an answer's body without its coding; None where it is too large or cannot be read."""
    response = exchange.response
    if response is None or len(response.body) > _MAX_BODY:
        return None
    coding = response.header(b"content-encoding")
    return undo_coding(response.body, coding, _MAX_BODY) if coding else response.body


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def _parse(body: bytes) -> Any:
    """Parse an answer in JSON; None for what is none."""
    try:
        return _unfold(_read(body))
    except RecursionError:
        return None


def _read(body: bytes) -> Any:
    """Parse JSON; None for what is none, and for what is no object and no list."""
    if body[:1] not in (b"{", b"[") and body.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


class _Told(dict[str, Any]):
    """An object that an answer holds as a text, as results of tools do."""

    def __init__(self, text: str, value: dict[str, Any]) -> None:
        super().__init__(value)
        self.text = text


def _unfold(value: Any) -> Any:
    """Put the object in the place of each text that is one."""
    if isinstance(value, dict):
        return {name: _unfold(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_unfold(item) for item in value]
    if isinstance(value, str) and value[:1] == "{" and value[-1:] == "}":
        try:
            return _Told(value, json.loads(value, parse_constant=_no_constant))
        except (ValueError, RecursionError):
            return value
    return value


def _fold(value: Any) -> Any:
    """Undo `_unfold`; a text whose object is as it was stays as it was."""
    if isinstance(value, _Told):
        if dict(value) == json.loads(value.text):
            return value.text
        close = None if '": ' in value.text else (",", ":")
        return json.dumps(dict(value), ensure_ascii=False, separators=close)
    if isinstance(value, dict):
        return {name: _fold(item) for name, item in value.items()}
    return [_fold(item) for item in value] if isinstance(value, list) else value


def _places(request: Request) -> dict[_Path, Any]:
    """Give what a request says, by place: segments of its path, pairs of its query, members of its body."""
    found: dict[_Path, Any] = {}
    for index, part in enumerate(request.path.split("/")):
        found["path", index] = unquote(part)
    query = request.target.partition("?")[2]
    for name, value in parse_qsl(query, keep_blank_values=True, max_num_fields=None):
        found["query", name] = value
    left = [_MAX_PLACES]
    tree = read_tree(request, _MAX_BODY, _read)
    if tree is not None:
        _collect(tree, ("body",), found, left)
    key = request.header(b"idempotency-key")
    if key is not None:
        found["header", "idempotency_key"] = key.decode("latin-1")
    return found


def _collect(value: Any, path: _Path, found: dict[_Path, Any], left: list[int]) -> None:
    left[0] -= 1
    if left[0] < 0 or len(path) > 32:
        return
    found[path] = value
    if isinstance(value, dict):
        for name, item in value.items():
            _collect(item, (*path, name), found, left)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _collect(item, (*path, index), found, left)


def _at(value: Any, path: _Path) -> tuple[bool, Any]:
    for step in path:
        if isinstance(step, str):
            if not isinstance(value, dict) or step not in value:
                return False, None
            value = value[step]
        else:
            if not isinstance(value, list) or step >= len(value):
                return False, None
            value = value[step]
    return True, value


def _keys(value: Any) -> Iterator[tuple[str, str]]:
    """Give by what a value is found: a number also as a form would write it."""
    match value:
        case bool():
            yield "bool", str(value)
        case int() | float():
            yield "text", _text(value)
        case str():
            yield "text", value
        case dict() | list():
            # Large ones are compared member by member.
            text = json.dumps(value, sort_keys=True)[:4096]
            if len(text) < 4096:
                yield "tree", text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _in_the_form_of(new: Any, like: Any) -> Any:
    """Give a value of the request as the answer writes it: a form has digits where JSON has a number."""
    if isinstance(like, int) and not isinstance(like, bool) and isinstance(new, str):
        return int(new) if new.isascii() and new.isdigit() and len(new) <= 18 else like
    if isinstance(like, str) and isinstance(new, int | float) and not isinstance(new, bool):
        return _text(new)
    return new


def _same_name(place: _Path, path: _Path) -> bool:
    one, other = (_last_name(steps) for steps in (place, path))
    return bool(one) and one == other


def _last_name(path: _Path) -> str:
    found = next((step for step in reversed(path) if isinstance(step, str)), "")
    return found.lower().replace("_", "").replace("-", "")


def _is_telling(place: _Path, path: _Path, value: Any) -> bool:
    """Say whether a value of the request stands in the answer by more than chance."""
    if isinstance(value, dict | list) or _same_name(place, path):
        return True
    if place[0] == "path" and _last_name(path).endswith("id"):
        return True
    return not isinstance(value, bool) and len(_text(value)) >= _NAME_CHARS


def _is_id(text: str) -> bool:
    return (
        _ID.fullmatch(text) is not None
        and any(map(str.isdigit, text))
        and _TIME.match(text) is None
    )


def _noun(path: str) -> str:
    """Name what an endpoint makes: `refund` of `/v1/refunds`."""
    parts = [part for part in path.lower().split("/") if part and part.isalpha()]
    return parts[-1].rstrip("s") if parts else ""
