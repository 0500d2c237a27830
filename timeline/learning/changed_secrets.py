"""Find the values in which two recordings differ and that redaction has replaced in both.

Their requests have one canonical form, since a placeholder counts there by its place alone. A playback compares the values all the same,
by their placeholders, so `learn` does, too. This needs placeholders that were made with one key.
"""

from collections.abc import Iterator

from ...store import RunInfo, Store
from ...tape.canonical.canonical_request import Rules
from ...tape.exchange import Exchange, Seq
from ...tape.matching.compare_request_secrets import FindInner
from ...tape.matching.header_agreement import Agreement
from ..reading.placeholder_key import find_key


def have_one_key(store: Store, first: RunInfo, second: RunInfo) -> bool:
    """Say whether the placeholders of two recordings are made with one key."""
    keys = {find_key(store, run) for run in (first, second)}
    return len(keys) == 1 and "" not in keys


def find_changed_secrets(
    one: Exchange, other: Exchange, rules: Rules, find: FindInner
) -> Iterator[str]:
    """Give the places of two requests with another replaced value.

    find: gives the secrets of a request outside of its header fields.
    """
    if one.request.secrets and other.request.secrets:
        agreement = Agreement(rules, _read_nothing, find, same_key=True)
        for changed in agreement.find_changed(other.request, one):
            yield changed.place


def _read_nothing(_seq: Seq) -> None:
    """Give no exchange: what earlier answers brought is looked for by `learn` itself."""
