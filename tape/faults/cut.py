"""The answer ends after so many bytes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..exchange import Ending, Exchange, Fault, FaultKind, Phase, RedactedText
from ..playback.script import Step, StepKind
from ..policy.faults import Injection
from .none import NoFault


class Cut(NoFault):
    """Play so many bytes and then the cut; an answer that is shorter ends as it does."""

    cuts = True

    def lay_over(self, steps: Iterable[Step], injection: Injection) -> Iterator[Step]:
        """Leave out what comes after the cut."""
        left = injection.rule.after_bytes
        for step in steps:
            if step.kind is StepKind.HEAD and not left:
                yield step
                yield Step(step.at_us, StepKind.FAIL, ending=injection.ending)
                return
            if step.kind is StepKind.DATA and len(step.data) >= left:
                yield step._replace(data=step.data[:left])
                yield Step(step.at_us, StepKind.FAIL, ending=injection.ending)
                return
            left -= len(step.data)
            yield step

    def give(
        self, found: Exchange, told: Mapping[str, Any], name: str, tape: str
    ) -> Exchange | None:
        """Give it with what came before the cut; as it is if it lies in a file, or was cut by an older version."""
        response, most = found.response, told.get("after_bytes")
        if response is None or response.spilled is not None or most is None:
            return found
        if len(response.body) < most:
            return found
        chunks, left = [], most
        for chunk in response.chunks:
            if left > 0:
                chunks.append(chunk._replace(size=min(chunk.size, left)))
            left -= chunk.size
        text = (
            f"{name}: the first {most:,} of the {len(response.body):,} bytes of {tape} were given"
        )
        at_us = chunks[-1].at_us if chunks else response.head_us
        ending = Ending(told.get("ending", Ending.RST.value))
        fault = Fault(FaultKind.CUT, Phase.BODY, RedactedText(text), at_us, ending)
        cut = replace(
            response, body=response.body[:most], chunks=tuple(chunks), complete=False, trailers=()
        )
        return replace(found, response=cut, fault=fault, end_us=at_us, gone=None)
