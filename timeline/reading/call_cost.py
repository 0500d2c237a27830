"""The usage of a model call: tokens as its answer states them, and money by a price table.

The table is that of `genai-prices`, as installed: nothing is asked for over the network. The provider is told by the
URL, and behind another address by the dialect. A model that the provider does not have in the table has no price;
it is never guessed from one with a like name elsewhere.

Slow to import, for who has set a limit alone.
"""

import contextlib
import datetime
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from importlib.util import find_spec

from ...tape.classify.model_apis import find_prices
from ...tape.dialects import Usage, read_request, read_response
from ...tape.exchange import HttpRequest, HttpResponse
from ...tape.policy.limits import NANO, CountedUsage
from .stated_usage import find_stated_usage


def read_counted_usage(
    request: HttpRequest,
    response: HttpResponse,
    started_ns: int,
    *,
    priced: bool,
    otherwise: Iterable[HttpRequest] = (),
) -> CountedUsage | None:
    """Read what a model call has used; None where that is nothing, because it was refused.

    started_ns: when it was asked, since prices change.
    priced: whether to look for its price.
    otherwise: the request in the other ways that it can be taken; looked at where nobody knows it as it is.
    """
    if response.status >= 400:
        return None
    if response.spilled is not None:
        return CountedUsage()
    answer = read_response(request, response)
    if answer is None:
        for other in otherwise:
            answer = read_response(other, response)
            if answer is not None:
                request = other
                break
    if answer is None:
        stated = find_stated_usage(response)
        return _count(stated) if stated is not None else CountedUsage()
    if answer.usage is None:
        return CountedUsage()
    is_all = answer.usage.is_all(is_said=bool(answer.choices))
    counted = replace(_count(answer.usage), is_whole=answer.complete and is_all)
    if not priced or not counted.stated:
        return counted
    found = find_price(request, answer.dialect, answer.model, answer.usage, started_ns)
    if found is None:
        # What was served has no price, or is not named: what was asked for may have one.
        meant = read_request(request)
        if meant is not None and meant.model != answer.model:
            found = find_price(request, answer.dialect, meant.model, answer.usage, started_ns)
    return counted if found is None else replace(counted, nano_usd=round(found * NANO))


def _count(usage: Usage) -> CountedUsage:
    counted = usage.count()
    if not counted.is_stated:
        return CountedUsage()
    return CountedUsage(True, counted.asked or 0, counted.said or 0, counted.read)


def _find_price(
    request: HttpRequest,
    dialect: str,
    model: str | None,
    usage: Usage,
    started_ns: int,
) -> Decimal | None:
    if not model:
        return None
    try:
        from genai_prices import Usage as Priced  # an extra, and a second of importing
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None

    table = get_snapshot()
    counted = usage.count()
    url = f"{request.scheme}://{request.authority}{request.path}"
    try:
        try:
            provider = table.find_provider(None, None, url)
        except LookupError:
            provider = table.find_provider(None, find_prices(dialect), None)
        whole = {
            "input_tokens": counted.asked or 0,
            "output_tokens": counted.said or 0,
            "cache_read_tokens": usage.cached_read_tokens,
            "cache_write_tokens": usage.cached_write_tokens,
            "cache_write_1h_tokens": usage.cached_write_1h_tokens,
        }
        asked = datetime.datetime.fromtimestamp(started_ns / 1e9, datetime.UTC)
        found = table.calc(Priced(**whole), model, provider.id, None, asked)
        prices = found.model_price
        if not _has_prices_of_all(prices, usage, found.model.id, provider.id):
            return None
        parts = _priced_parts(prices, usage)
        if parts:
            found = table.calc(Priced(**whole, **parts), model, provider.id, None, asked)
        return _with_hours(found.total_price, prices, usage)
    except (LookupError, ValueError, ArithmeticError):
        return (
            None  # a model that it does not know, or an answer whose parts are more than the whole
        )


def _has_prices_of_all(prices: object, usage: Usage, model: str, provider: str) -> bool:
    """Say whether the table has a price for all that was used: what it has none for, it takes for text.

    Images and video that are given cost as text where no other price is stated. Google's table leaves out the price of sound that is
    given where it is that of text, and of sound that is made where a model makes nothing else.
    """
    google = provider == "google"
    for one in usage.modes:
        is_given_as_text = one.kind != "audio" or google
        if one.given and not is_given_as_text and not _has(prices, f"input_{one.kind}_mtok"):
            return False
        is_all_made = one.kind == "audio" and google and "tts" in model
        if one.made and not is_all_made and not _has(prices, f"output_{one.kind}_mtok"):
            return False
    return not _has(prices, "output_citation_mtok")  # how many those are is not read


def _has(prices: object, name: str) -> bool:
    return getattr(prices, name, None) is not None


def _priced_parts(prices: object, usage: Usage) -> dict[str, int | None]:
    """Give the counts that the table has a price of their own for; it wants to know how much of each was cached."""
    parts: dict[str, int | None] = {}
    for kind, given, cached, made in usage.modes:
        read = f"cache_{kind}_read"
        if given and (_has(prices, f"input_{kind}_mtok") or _has(prices, f"{read}_mtok")):
            parts[f"input_{kind}_tokens"] = given
            parts[f"{read}_tokens"] = cached if usage.cached_read_tokens else 0
        if made and _has(prices, f"output_{kind}_mtok"):
            parts[f"output_{kind}_tokens"] = made
    if usage.reasoning_tokens and _has(prices, "output_reasoning_mtok"):
        parts["output_reasoning_tokens"] = usage.reasoning_tokens
    return parts


def _with_hours(total: Decimal, prices: object, usage: Usage) -> Decimal | None:
    """Add sound that is billed by the hour; None where the table has no price for that."""
    if not usage.audio_seconds:
        return total
    hour = getattr(prices, "input_audio_hours", None)
    if not isinstance(hour, Decimal):
        return None
    return total + hour * Decimal(str(usage.audio_seconds)) / 3600


def find_price(
    request: HttpRequest, dialect: str, model: str | None, usage: Usage, started_ns: int
) -> Decimal | None:
    """Find what a use of a model costs, in US dollars; None where no price is known, or no table is installed.

    What is beside costs what it would have cost alone: prices depend on the model, and on how long a context is.
    """
    total = Decimal(0)
    stated = [one for one in (replace(usage, beside=()), *usage.beside) if one.count().is_stated]
    if not stated:
        return None
    for one in stated:
        price = _find_price(request, dialect, one.model or model, one, started_ns)
        if price is None:
            return None
        total += price
    return total


def has_prices() -> bool:
    """Say whether a price table is installed."""
    return find_spec("genai_prices") is not None


def load_prices() -> None:
    """Read the table, so that the first answer need not wait for it. Any thread; takes about a second."""
    with contextlib.suppress(ImportError):
        from genai_prices.data_snapshot import get_snapshot

        get_snapshot()
