"""No fault. Each kind of fault begins as this one, and says what it does otherwise: copy this file to add one.

What is done while recording is said in a word or two, and carried out by `addons/faults/` and the engine. What is done in
playback is laid over the steps that play the recorded answer. `give` says afterwards what the client was given by that.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..exchange import Exchange, Headers, Request
from ..playback.script import Step
from ..policy.faults import Injection


class NoFault:
    """Nothing is done."""

    muted = False
    """The client is told nothing of the answer, in either mode."""
    cuts = False
    """While recording: the answer ends after `after_bytes`."""
    resets = False
    """While recording, of a request that is not sent: the connection ends. Else it hangs, if there is no answer of ours."""
    replaces = False
    """In playback the client is given nothing of the recorded answer."""

    def delay_s(self, injection: Injection) -> float:
        """Say how much later the request is sent, while recording."""
        return 0.0

    def make_answer(
        self, request: Request, injection: Injection
    ) -> tuple[int, Headers, bytes] | None:
        """Give an answer of ours: status, header fields without `content-length`, body."""
        return None

    def lay_over(self, steps: Iterable[Step], injection: Injection) -> Iterator[Step]:
        """Give the steps that play a recorded answer with the fault over it."""
        return iter(steps)

    def give(
        self, found: Exchange, told: Mapping[str, Any], name: str, tape: str
    ) -> Exchange | None:
        """Give an exchange of a tape as the client of a playback saw it; None if that is not known.

        told: what the event `injected` says. name: of the fault, for people. tape: name of the tape and seq there.
        """
        return None


def give_nothing(found: Exchange) -> Exchange:
    """Give an exchange without its answer."""
    return replace(found, response=None, fault=None, gone=None, websocket=None, interim=())
