"""The interface of a dialect: which requests it claims, how bodies are read, how streams are folded.

A stream is folded into the body that would have been sent at once, and then read in the same way. So each
dialect is one file that reads alike: `DIALECT` on top of what it needs.

A reader is handed JSON of any shape. It gives None for what it does not know, and never raises.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Protocol

from ...exchange import HttpRequest, HttpResponse
from .drift_places import NOWHERE, Places
from .inference import Finish, InferenceRequest, InferenceResponse
from .untrusted_json import Json, JsonObject


class Claim(Enum):
    """What a dialect says of a request by its method, host, path and header fields."""

    NO = 0
    MAYBE = 1
    """If its body has the shape."""
    YES = 2


class Heard(IntEnum):
    """What a fold made of one piece of a stream."""

    UNKNOWN = 0
    KNOWN = 1
    CONTENT = 2
    """It carries something that the model wrote."""


class Fold(Protocol):
    """A stream on its way to being one body."""

    ended: bool
    """The stream has said that it is at its end."""

    def add(self, name: str, piece: JsonObject) -> Heard:
        """Take the next piece; `name` is that of its event, where the framing has names."""

    def whole(self) -> Json:
        """Give the body made of all pieces so far."""


class NoFold:
    """Of a dialect that has no streams."""

    ended = False

    def add(self, name: str, piece: JsonObject) -> Heard:
        """Know nothing."""
        return Heard.UNKNOWN

    def whole(self) -> Json:
        """Give nothing."""
        return None


@dataclass(frozen=True, slots=True)
class Dialect:
    """A reader for one wire format."""

    name: str
    claim: Callable[[HttpRequest], Claim]
    has_shape: Callable[[Json], bool]
    """Whether a request's body can be one of this dialect; asked where the claim is not enough."""
    read_request: Callable[[Json, HttpRequest], InferenceRequest | None]
    read_answer: Callable[[Json, HttpRequest, HttpResponse], InferenceResponse | None]
    make_fold: Callable[[], Fold]
    by_lines: bool = False
    """Streams are lines of JSON, whatever their content type says."""
    by_members: bool = False
    """An array is a stream."""
    places: Places = NOWHERE
    """Where what may drift stands in a request."""
    choose_places: Callable[[Json], Places] | None = None
    """The same by a request's body, where one dialect reads bodies of several formats."""

    def find_places(self, tree: Json) -> Places:
        """Say where in a request with this body stands what may drift."""
        return self.places if self.choose_places is None else self.choose_places(tree)


def is_post(request: HttpRequest) -> bool:
    """Say whether a request is a POST, as all but a few are."""
    return request.method.upper() == "POST"


def find_finish(reason: str | None, known: dict[str, Finish], calls: bool = False) -> Finish | None:
    """Normalise a finish reason; None where none is stated.

    calls: the answer holds tool calls, and the provider has no word of its own for that.
    """
    if reason is None:
        return None
    finish = known.get(reason, Finish.OTHER)
    return Finish.TOOL_CALLS if calls and finish is Finish.STOP else finish
