"""Find the exchanges of a tape that show what an answer to an effect looks like."""

from ...config import Classes
from ...store import RunInfo, Store
from ...tape.diff.nearest import Endpoints, nearest
from ...tape.exchange import Request
from ...tape.matching.cursor import Exhausted
from ...tape.matching.index import reclassify
from ...tape.policy.decide import Found
from ...tape.stubs.synthesize import MAX_MODELS, Model, is_model

_READ = 3 * MAX_MODELS
"""Recorded exchanges of an endpoint that are read."""


def find_models(
    store: Store,
    tape: RunInfo,
    near: Endpoints,
    classes: Classes,
    request: Request,
    found: Found | None,
) -> list[Model]:
    """Find the exchanges that show what an answer to an effect looks like, the nearest first. Blocking.

    request: redacted.
    found: what the cursor says of it.
    """
    models: list[Model] = []
    for seq in sorted(set(near.similar(request, _READ))):
        exchange = store.exchanges.find(tape, seq)
        if exchange is not None and is_model(reclassify(exchange, classes), request):
            models.append(Model(seq, exchange))
    best = nearest(request, ((model.seq, model.exchange.request) for model in models))
    if best is None:
        return []
    # Of what was asked just so and is exhausted, the last answer tells how things stand.
    exhausted = isinstance(found, Exhausted) and any(model.seq == found.last for model in models)
    first = found.last if isinstance(found, Exhausted) and exhausted else best[0]
    models.sort(key=lambda model: (model.seq != first, model.seq))
    return models[:MAX_MODELS]
