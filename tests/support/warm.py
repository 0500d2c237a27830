"""What a process of ours makes with its first request: where they are forked this is imported, and it is made once."""

from playhead.config import Config
from playhead.proxy.run import launcher
from playhead.proxy.sandbox.filesystem import named_pipes
from playhead.tape.classify.by_method_and_url import classify
from playhead.tape.redaction.redactor import Redactor

# Every pattern of the shipped rules is compiled.
classify("POST", "https", "host.test", 443, "/path", Config().classes)
# The search of secrets is compiled: every proxy would do so at its start, for half of the CPU of a short replay.
Redactor.prepare()

_SEARCH_S, _AGAIN_S = 0.01, 0.01


def _search_briefly(where: named_pipes.Where, most_s: float) -> named_pipes.Search:
    return named_pipes.Search(where, _SEARCH_S if most_s == named_pipes.MOST_S else most_s)


# What is near is looked at first. In a home folder the search would take all of its time, in each of some hundred
# replays; what is forked is so with reduced counts alone.
launcher.Search = _search_briefly  # type: ignore[assignment, attr-defined]  # imported there, not exported; a class there
named_pipes.MOST_AGAIN_S = _AGAIN_S
