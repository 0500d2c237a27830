"""Say whether what a pattern finds are ids that tie requests together: a profile links these, and leaves other tokens out.

1. It has letters, or stands in a word with letters, as a time does in `read_file_1732464000000_0`: a number alone says when, or how long.
2. One of the first recording stands for one of the second, and back, wherever they are.
3. One comes in more than one place: in several requests, or several times in one.
"""

import re
from collections import Counter
from collections.abc import Iterable

from ...tape.canonical.masks import Pattern, find_ids, what_is_left

_WORD = re.compile("(?=.*[A-Za-z])[0-9A-Za-z_.:-]{8,128}")


def tie_requests(regex: str, requests: Iterable[Iterable[tuple[str, str]]]) -> bool:
    """Say whether a pattern finds ids that tie requests together.

    requests: what stands in its place in each request of two recordings.
    """
    pattern = Pattern(regex)
    stands_for: dict[bytes, bytes] = {}
    came_from: dict[bytes, bytes] = {}
    count: Counter[bytes] = Counter()
    for values in requests:
        for old, new in values:
            if len(what_is_left(old, (pattern,))) == 1 and len(what_is_left(new, (pattern,))) == 1:
                continue
            olds, news = (list(find_ids(text, [pattern])) for text in (old, new))
            if len(olds) != len(news):
                return False
            for one, other in zip(olds, news, strict=True):
                if not (_is_id(one) and _is_id(other)):
                    return False
                if stands_for.setdefault(one, other) != other:
                    return False
                if came_from.setdefault(other, one) != one:
                    return False
                count[one] += 1
    return any(number > 1 for number in count.values())


def _is_id(found: bytes) -> bool:
    text = found.decode("utf-8", "replace")
    return bool(_WORD.fullmatch(text))
