"""What an exchange says of a resource: that it is so, that it was written, that it is gone; and in which fields two states differ.

1. The resource is one URL in its canonical form, with its query. A POST to the collection above it makes it, where the answer's `Location` names the URL, or
   its `id` is the last segment.
2. What a read answers is the state. So is what a write answers, where it looks like the state: at least half of the members
   of what was known, or of what was sent if nothing was known. What a POST answers has to have the same `id` as well, or none, and
   every list: a POST to a collection answers the item that it made. Otherwise the state is what was sent, a PATCH merged into what was known
   (RFC 7396). A write to what is inside of it, as `/orders/57/cancel`, counts where its answer shows the resource; else it may be why a
   read shows another state. Members that a PUT did not send are left as they were: servers keep ids and versions. Nobody knows of these until a
   read shows them.
3. A write was made where its answer says so, by a status from 200 to 299. It was not where the service refused it (most of 400 to
   499), sent the client elsewhere with it, or was not reached. Any other may have been made: without an answer, with one of
   a gateway that waited in vain, or with a redirect, which a login page is as well as a form that was taken. What was only accepted (202)
   is made later.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from urllib.parse import quote, urljoin

from ...tape.canonical.canonical_request import open_body
from ...tape.canonical.canonical_url import canonical_url, same_url
from ...tape.dialects.common.untrusted_json import Json, find_json
from ...tape.exchange import Exchange, VerdictKind
from ...tape.matching.traceable_values import answer_body
from ..blame.exchange_values import member_step

_READS = ("GET",)
_WRITES = ("PUT", "PATCH", "POST", "DELETE")
_GONE = (404, 410)
_ACCEPTED = 202
"""It will be done, perhaps: the answer does not say that it has been."""
_TIMED_OUT = (408, 499)
"""Of the client's errors, those that say nothing of what the service did."""
_NOT_MADE = (304, 307, 308, 501, 505)
"""Of the others, those that say that nothing was done: sent on with the same method and body, or not understood."""


class No(Enum):
    """What stands in the place of a value that is not there."""

    MISSING = "missing"
    """The resource or the field is not there."""
    UNKNOWN = "unknown"
    """No recorded exchange says what it was."""


type State = Json | No


@dataclass(frozen=True, slots=True)
class Field:
    """A field that changed."""

    path: str
    old: State
    new: State


@dataclass(frozen=True, slots=True)
class Use:
    """An exchange with the resource."""

    run: str
    exchange: Exchange
    makes: bool = False
    """Whether it is a POST to the collection that made the resource."""
    is_below: bool = False
    """Whether it is a write to something inside of the resource, as `/orders/57/cancel` is, which may have changed it."""

    @property
    def seq(self) -> int:
        """Its seq in its run."""
        return self.exchange.seq

    @property
    def method(self) -> str:
        """Its method."""
        return self.exchange.request.method

    @property
    def started_ns(self) -> int:
        """When it was asked."""
        return self.exchange.started_ns

    @property
    def ended_ns(self) -> int:
        """When its answer had ended."""
        return self.exchange.started_ns + self.exchange.end_us * 1000

    @property
    def status(self) -> int | None:
        """Of its answer; None where none came."""
        response = self.exchange.response
        return response.status if response is not None else None

    @property
    def may_have_been_made(self) -> bool:
        """Whether it was sent, and no answer came that says whether it was done."""
        fault, status = self.exchange.fault, self.status
        if self.exchange.verdict is VerdictKind.REFUSED:
            return False
        if status is None:
            return fault is None or not fault.is_unreached
        is_refused = 400 <= status < 500 and status not in _TIMED_OUT
        return not self.is_made and not is_refused and status not in _NOT_MADE

    @property
    def is_made(self) -> bool:
        """Whether an answer says that it was done."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def is_read(self) -> bool:
        """Whether it only asks."""
        return self.method in _READS

    @property
    def is_write(self) -> bool:
        """Whether it asks for a change."""
        return self.method in _WRITES

    @property
    def sent(self) -> Json:
        """What it sends as JSON; None where that is none."""
        return find_json(open_body(self.exchange.request)[0])

    @property
    def answered(self) -> Json:
        """What its answer has as JSON; None where that is none."""
        response = self.exchange.response
        return find_json(answer_body(response)) if response is not None else None


def find_use(run: str, exchange: Exchange, url: str) -> Use | None:
    """Say what an exchange has to do with the resource at a URL; None for nothing."""
    request = exchange.request
    if same_url(request.url, url):
        return Use(run, exchange)
    if _is_below(request.method, request.url, url):
        return Use(run, exchange, is_below=True)
    response = exchange.response
    if request.method != "POST" or response is None or not 200 <= response.status < 300:
        return None
    if not canonical_url(request.url).is_above(canonical_url(url)):
        return None
    location = response.header(b"location")
    if location is not None:
        named = urljoin(request.url, location.decode("latin-1").strip())
        return Use(run, exchange, makes=True) if same_url(named, url) else None
    told = find_json(answer_body(response))
    made = told.get("id") if isinstance(told, dict) else None
    if not isinstance(made, str | int) or isinstance(made, bool):
        return None
    above = request.url.partition("?")[0].rstrip("/")
    is_it = same_url(f"{above}/{quote(str(made), safe='')}", url)
    return Use(run, exchange, makes=True) if is_it or same_url(f"{above}/{made}", url) else None


def find_made(use: Use) -> str | None:
    """Find what a POST made, by its answer: the `Location`, else the `id`."""
    response, told = use.exchange.response, use.answered
    location = response.header(b"location") if response is not None else None
    if location is not None:
        return location.decode("latin-1").strip()
    made = told.get("id") if isinstance(told, dict) else None
    return str(made) if isinstance(made, str | int) and not isinstance(made, bool) else None


def may_be_use(method: str, asked: str, url: str) -> bool:
    """Say whether an exchange may have to do with a resource, by its method and URL alone."""
    one, other = canonical_url(asked), canonical_url(url)
    is_above = method == "POST" and one.is_above(other)
    return one == other or is_above or _is_below(method, asked, url)


def _is_below(method: str, asked: str, url: str) -> bool:
    """Say whether an exchange writes to what is inside of a resource. Inside of a whole site is nothing of one."""
    resource = canonical_url(url)
    is_site = not resource.path.strip("/")
    return method in _WRITES and not is_site and resource.is_above(canonical_url(asked))


def find_state(use: Use, known: State) -> State:
    """Give the state of the resource after an exchange.

    known: what it was before.
    Gives UNKNOWN where the exchange does not say.
    """
    status = use.status
    if not use.is_made and not (use.is_read and status in _GONE):
        return known
    if use.is_read:
        if status in _GONE:
            return No.MISSING
        told = use.answered
        return told if status == 200 and isinstance(told, dict | list) else known
    if use.method == "DELETE":
        return No.MISSING
    sent, told = use.sent, use.answered
    if use.makes:
        return told if isinstance(told, dict) and _is_like(told, sent) else sent
    if shows_state(use, known):
        return told
    state = find_sent(use, known)
    if isinstance(state, dict) and isinstance(told, dict) and _is_like(told, sent):
        return {**state, **told}
    return state


def shows_above(use: Use, known: State) -> bool:
    """Say whether the answer to a write inside of a resource shows the resource: what has its `id`, and is like it beside.

    known: what it was before.
    """
    told = use.answered
    if not use.is_made or not isinstance(told, dict) or not isinstance(known, dict):
        return False
    lists = (name for name, value in known.items() if isinstance(value, list))
    if "id" not in known or told.get("id") != known["id"] or not told.keys() >= {*lists}:
        return False
    # Collections count for themselves: what was made may have the same id by chance.
    beside = {name: value for name, value in known.items() if name != "id"}
    return _is_like(told, beside) and not _makes_inside(use, told, beside)


def _makes_inside(use: Use, told: dict[str, Json], known: dict[str, Json]) -> bool:
    """Say whether a write inside of a resource made what its answer shows: by the `Location`, or of what was sent.

    known: what the resource was before, without its `id`.
    """
    response, sent = use.exchange.response, use.sent
    location = response.header(b"location") if response is not None else None
    if location is not None:
        url = use.exchange.request.url
        named = urljoin(url, location.decode("latin-1").strip())
        return canonical_url(url).is_above(canonical_url(named))
    given = sent.items() if isinstance(sent, dict) else ()
    is_of_sent = any(
        name not in known and name != "id" and name in told and same_state(told[name], value)
        for name, value in given
    )
    is_kept = any(name in told and same_state(told[name], value) for name, value in known.items())
    return is_of_sent and not is_kept


def is_only_accepted(use: Use, known: State) -> bool:
    """Say whether a write was accepted (202), to be made later, and its answer does not show what the resource is by now.

    known: what it was before.
    """
    if use.status != _ACCEPTED or use.makes or use.method == "POST":
        return False
    return use.method == "DELETE" or not shows_state(use, known)


def shows_state(use: Use, known: State) -> bool:
    """Say whether the answer to a write shows the whole resource.

    known: what it was before.
    """
    told, sent = use.answered, use.sent
    if use.method == "DELETE" or use.makes:
        return True
    if not isinstance(told, dict):
        return False
    if use.method == "POST":
        return _shows_posted(use, told, known)
    return _is_like(told, known if isinstance(known, dict) and known else sent)


def _shows_posted(use: Use, told: dict[str, Json], known: State) -> bool:
    """Say whether the answer to a POST shows what was posted to, not what the POST made there."""
    made, url = find_made(use), use.exchange.request.url
    # It made nothing else: its `Location` or `id` is the one of the URL.
    is_it = made is not None and same_url(urljoin(url, made), url)
    if not isinstance(known, dict) or not known:
        return is_it
    if made is not None and not is_it and made != str(known.get("id")):
        return False
    lists = (name for name, value in known.items() if isinstance(value, list))
    return told.get("id") == known.get("id") and _is_like(told, known) and told.keys() >= {*lists}


def find_sent(use: Use, known: State) -> State:
    """Give the state that a write asked for; UNKNOWN where only its service can say.

    known: what it was before.
    """
    if use.method == "DELETE":
        return No.MISSING
    sent = use.sent
    if use.method == "PUT" and isinstance(sent, dict) and isinstance(known, dict):
        return {**known, **sent}
    if use.method == "PUT" and isinstance(sent, dict | list):
        return sent
    if use.method == "PATCH" and isinstance(sent, dict) and isinstance(known, dict):
        return merge(known, sent)
    return No.UNKNOWN


def explains(use: Use, fields: Iterable[Field]) -> bool:
    """Say whether a write that was made, and whose answer does not show the state, is why a read shows another one.

    A PUT took away what it did not send; a POST added to a list what its answer says that it made, and may have counted it.
    fields: in which the state differs.
    """
    if use.method == "PUT":
        names = use.sent.keys() if isinstance(use.sent, dict) else ()
        kept = {f"${member_step(name)}" for name in names}
        return all(one.new is No.MISSING and one.path not in kept for one in fields)
    made = find_made(use) if use.method == "POST" else None
    if made is None:
        return False
    lists = [one for one in fields if not isinstance(one.old, int) or not isinstance(one.new, int)]
    return len(lists) == 1 and _adds(lists[0].old, lists[0].new, made)


def _adds(old: State, new: State, made: str) -> bool:
    """Say whether a list has the item that was made in addition, and nothing else."""
    if not isinstance(old, list) or not isinstance(new, list) or len(new) != len(old) + 1:
        return False
    added = [one for one in new if not any(same_state(one, other) for other in old)]
    item = added[0] if len(added) == 1 else None
    return isinstance(item, dict) and str(item.get("id")) == made.rstrip("/").rpartition("/")[2]


def _is_like(told: dict[str, Json], other: State) -> bool:
    if not isinstance(other, dict) or not other:
        return False
    return 2 * len(told.keys() & other.keys()) >= len(other)


def merge(known: dict[str, Json], patch: dict[str, Json]) -> dict[str, Json]:
    """Merge a patch into what was known (RFC 7396)."""
    found = dict(known)
    for name, value in patch.items():
        inner = found.get(name)
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict):
            found[name] = merge(inner if isinstance(inner, dict) else {}, value)
        else:
            found[name] = value
    return found


def find_fields(old: State, new: State, path: str = "$") -> list[Field]:
    """Give the fields in which two states differ, in their order; a list counts as one."""
    if isinstance(old, dict) and isinstance(new, dict):
        found: list[Field] = []
        for name in dict.fromkeys((*old, *new)):
            one, other = old.get(name, No.MISSING), new.get(name, No.MISSING)
            found += find_fields(one, other, path + member_step(name))
        return found
    return [] if same_state(old, new) else [Field(path, old, new)]


def same_state(one: State, other: State) -> bool:
    """Compare two states; true and 1 are two values."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_state(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_state, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def find_at(state: State, path: str) -> State:
    """Give what a state has at a path of `find_fields`; MISSING where there is nothing."""
    if path == "$":
        return state
    for field in find_fields({}, state if isinstance(state, dict) else {}):
        if field.path == path:
            return field.new
    return No.MISSING
