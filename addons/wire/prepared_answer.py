"""An answer that is laid out to be played: what is recorded, or what is put in its place on purpose."""

from typing import NamedTuple

from mitmproxy import http

from ...tape.playback.script import Steps


class LaidAnswer(NamedTuple):
    """What is played to a client."""

    head: http.Response
    steps: Steps
    ragged: bool
    """As `Response.ragged`."""
    withheld: bool = False
    """Whether it is a refusal in the place of a recorded answer."""
