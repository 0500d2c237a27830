"""Pair the ids and times of two texts: which of one run may stand for which of the other, and from where on."""

from .made_anew import Anew, find_anew
from .renaming import Pair

_AS_FAR_S = 5.0
"""By how much two times of answers that are as long after their requests may differ."""


def zip_tokens(
    one: tuple[Anew, ...], other: tuple[Anew, ...], *, begins: bool, makes: bool = False
) -> list[Pair]:
    """Pair the ids and times of two texts by their order.

    begins: whether they are in answers.
    makes: whether in those to effects.
    """
    mine, theirs = {token.text for token in one}, {token.text for token in other}

    def is_elsewhere(first: Anew, second: Anew) -> bool:
        """Say whether one of two is at another place of the other text, so that it stands for itself: a list has another order there.

        Numbers that a server counts on are the same by chance.
        """
        if first.text == second.text or first.is_time or (makes and first.is_counted):
            return False
        return first.text in theirs or second.text in mine

    return [
        Pair(
            first.text,
            second.text,
            _may_begin(first, second, begins=begins, makes=makes)
            and not is_elsewhere(first, second),
            first.is_time or second.is_time,
            first.is_counted and second.is_counted,
            first.label,
        )
        for first, second in zip(one, other, strict=False)
    ]


def _may_begin(first: Anew, second: Anew, *, begins: bool, makes: bool) -> bool:
    """Say whether one may stand for the other from here on.

    begins: they are in answers. Who answers makes ids, but not every time: a departure is one that somebody chose.
    """
    if first.is_counted or second.is_counted:
        return makes and first.is_named and second.is_named
    if first.is_own and second.is_own:
        return True
    if not begins or not (first.is_time or second.is_time):
        return begins
    if first.ahead_s is None or second.ahead_s is None:
        return first.is_made and second.is_made
    is_as_far = abs(first.ahead_s - second.ahead_s) <= _AS_FAR_S
    return is_as_far or (first.is_made and second.is_made)


def pair_ids(one: str, other: str, *, begins: bool) -> list[Pair]:
    """Give two ids as they are in texts, where a prefix as `resp_` is none of it."""
    (form, tokens), (form_there, tokens_there) = find_anew(one), find_anew(other)
    if form == form_there and tokens:
        return [
            pair._replace(may_begin=begins, is_counted=False)
            for pair in zip_tokens(tokens, tokens_there, begins=begins)
        ]
    return [Pair(one, other, begins)]
