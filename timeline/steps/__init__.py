"""The steps of a run: what each exchange was to the agent, which agent it belongs to, and why it followed.

`Tracer` takes the exchanges of a run in order and gives the steps of each at once: what it says looks back only, so a run
that is still being recorded reads like one that has ended, and no run is held in memory.
"""

from .step import Edge, Evidence, Lane, Step, StepKind
from .tracer import Tracer

__all__ = ["Edge", "Evidence", "Lane", "Step", "StepKind", "Tracer"]
