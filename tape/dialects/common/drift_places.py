"""The fields of a request that may drift between a tape and its replay.

A place in a JSON body is written as its names from the root with dots between, as `generationConfig.topP`.
A field that can be written in several ways has several places. The text of a system prompt may stand in the
messages that a conversation begins with; a model may stand in the path of the URL.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

FIELDS = ("model", "temperature", "top_p", "seed", "tools", "system")
"""What may drift, by the names of `Places` and `InferenceRequest.drift`."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where one wire format has the fields that may drift; empty where it has no such field."""

    model: tuple[str, ...] = ()
    temperature: tuple[str, ...] = ()
    top_p: tuple[str, ...] = ()
    seed: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    leading: tuple[str, ...] = ()
    """Lists of messages; the first of them that are of a role in `roles` are part of the system prompt."""
    roles: frozenset[str] = frozenset({"system", "developer"})
    in_path: re.Pattern[str] | None = None
    """Finds, as a whole, the name of the model in the path."""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Give each place in a body with its field, the lists of messages aside."""
        for field in FIELDS:
            for place in getattr(self, field):
                yield field, place

    def within(self, outer: str) -> "Places":
        """Give the same places, and all of them once more inside of another object."""

        def both(places: tuple[str, ...]) -> tuple[str, ...]:
            return (*places, *(f"{outer}.{place}" for place in places))

        return replace(
            self,
            model=both(self.model),
            temperature=both(self.temperature),
            top_p=both(self.top_p),
            seed=both(self.seed),
            tools=both(self.tools),
            system=both(self.system),
            leading=both(self.leading),
        )


NOWHERE = Places()
"""Of a format in which nothing may drift."""

DEPLOYMENT = re.compile(r"(?<=/deployments/)[^/]+(?=/)")
"""Azure's name for a model of one's own."""
BEDROCK = re.compile(
    r"(?<=/model/).+(?=/(?:converse|converse-stream|invoke|invoke-with-response-stream)$)"
)
GOOGLE = re.compile(
    r"(?:(?<=/models/)[^/:]+|(?<=/)endpoints/[^/:]+)"
    r"(?=:(?:generateContent|streamGenerateContent|rawPredict|streamRawPredict)$)"
)
"""Gemini, and what others serve on Vertex."""


def find_in_path(path: str) -> re.Match[str] | None:
    """Find the name of a model in a path or a URL without query, whoever's it is."""
    return next((found for way in _WAYS if (found := way.search(path))), None)


_WAYS = (DEPLOYMENT, BEDROCK, GOOGLE)
