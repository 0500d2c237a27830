"""Whether a value tells where it comes from: no other place has it by chance.

1. 12 bytes that are no words, 6 with letters and digits, 4 digits that count, a code such as `ORD-TKBUGBK`.
2. What programs and people say again and again does not: names of states, up to five words with small numbers, phrases of HTTP,
   media types, zones, days, times on the quarter of an hour, a line, charsets, versions, colours, standards, lists such as a client
   accepts.
3. Numbers that many have do not: years, days, powers of two, ports, seconds of a week, 9999, 1234, 19.99, a third.
"""

import re
from encodings.aliases import aliases
from http import HTTPStatus

from ...tape.matching.traceable_values import MIN_VALUE

ID = 6
"""Characters from which on letters and digits are an id."""
_CODE = re.compile(r"[A-Z]{2,6}-[A-Z0-9]{6,}")
"""A short prefix, a hyphen and capitals are an id, also where chance gave it no digit."""
_WORDS = re.compile(
    r"[a-z]+(?:[_.-][a-z]+)*|[A-Z]+(?:_[A-Z]+)*|[A-Za-z]+[-_/]?[0-9]{1,3}"
    # Camel case, and up to three words: places and departments are written as people are.
    r"|(?:[A-Z]?[a-z]+)(?:[A-Z][a-z]+)*|[A-Z]?[a-z]+(?: [A-Z]?[a-z]+){1,2}|[A-Z]+(?: [A-Z]+){1,2}"
    # `Windows 11`; names of regions, models and machines: words joined with small numbers.
    r"|(?:[A-Z]?[a-z]+ ){1,2}[0-9]{1,3}"
    r"|(?=[^-_.]*[-_.])(?:[a-z]+|[a-z]?[0-9]{1,2}[a-z]?)(?:[-_.](?:[a-z]+|[a-z]?[0-9]{1,2}[a-z]?))*"
    # The same in capitals, and what has a version: `US-EAST-1A`, `HTTP/1.1`, `curl/8.5.0`.
    r"|(?=[^-_.]*[-_.])(?:[A-Z]+|[A-Z]?[0-9]{1,2}[A-Z]?)(?:[-_.](?:[A-Z]+|[A-Z]?[0-9]{1,2}[A-Z]?))*"
    r"|[A-Za-z]+(?:[-_][A-Za-z]+)*[-/ ]?v?[0-9]{1,3}(?:\.[0-9]{1,3}){1,3}"
    r"|(?:application|audio|font|image|multipart|text|video)/[a-z0-9.+-]+(?:; ?charset=[A-Za-z0-9-]+)?"
    r"|(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific|Etc)/[A-Za-z_/+-]+"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:(?:00|15|30|45)(?::00)?(?:\.0+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
    # A model of a day, a version before its release, a quarter, a size of pictures, a collation, this machine and hosts of examples.
    r"|[a-z]+(?:[-_.](?:[a-z]+|[0-9]{1,2}[a-z]?))*[-@]20[0-9]{2}-?[0-9]{2}-?[0-9]{2}(?:-v[0-9](?::[0-9])?)?"
    r"|v[0-9]{1,2}(?:alpha|beta|rc|preview|p)[0-9]{1,3}|(?:FY|CY|[QH][1-4][-/ ]?)(?:20)?[0-9]{2}|20[0-9]{2}[-/ ]?[QH][1-4]"
    r"|[0-9]{2,4}x[0-9]{2,4}|(?:utf8(?:mb[34])?|latin[0-9]|ucs2|utf16)_[a-z0-9_]{1,30}|utf8mb[34]"
    # A locale, a colour, a standard, addresses of examples.
    r"|[a-z]{2,3}[_-][A-Z]{2}(?:\.[A-Za-z0-9-]{3,12})?(?:@[a-z]+)?|#[0-9a-fA-F]{3,8}|(?:rgb|hsl)a?\([0-9., %]{3,40}\)"
    r"|(?:ISO|IEC|DIN|EN|RFC|IEEE|ANSI|NIST)(?:/(?:IEC|EN|IEEE))?[ -]?[0-9]{1,5}(?:[-:][0-9]{1,4})*"
    r"|[A-Za-z]+(?:[._+-][A-Za-z]+)*[0-9]{0,2}@(?:[a-z]+\.)?example\.(?:com|net|org)"
    r"|(?:https?://)?(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]|host\.docker\.internal|(?:www\.)?example\.(?:com|net|org))(?::[0-9]{1,5})?/?"
    r"|[0-9]{4}[/.][0-9]{2}[/.][0-9]{2}|[0-9]{1,2}([/.-])[0-9]{1,2}\1[0-9]{4}"
    r"|(?:[A-Z][a-z]{2,8},? )?(?:[0-9]{1,2}\.? [A-Z][a-z]{2,8}|[A-Z][a-z]{2,8}\.? [0-9]{1,2}),? [0-9]{4}"
)
"""A word, words as names of states and tools are written, a word and a small number: `requires_action` and `sha256` are in many places."""
_SIGNS = re.compile(r"[\W_]*")
_PLAIN_WORD = re.compile(
    r"[a-z]+|[A-Z]+|[A-Z]?[a-z]+(?:[A-Z][a-z]+)*"
    # Beside small numbers: `2nd`, `365days`, `10EUR`, `b12`, `A320neo`.
    r"|[0-9]{1,3}(?:[a-z]*|[A-Z]{1,3}|[A-Z]?[a-z]+)|(?:[a-z]+|[A-Z]{1,4}|[A-Z][a-z]+)[0-9]{1,3}|[A-Za-z][0-9]{1,3}[a-z]{1,3}"
)
_JOINED = re.compile(r"['\u2019./&+-]")
"""What joins words: `Content-Type`, `and/or`, `don't`."""
_SAYING = 6
"""Words from which on a text is no saying that many have."""
_ACCEPTED = (
    r"(?:\*(?:/\*)?|[a-z-]+(?:=[0-9]+)?|[a-z]{2,3}-[A-Za-z0-9]{2,4}"
    r"|(?:application|audio|font|image|multipart|text|video)/[a-z0-9.+*-]+)(?:; ?q=[01](?:\.[0-9]{1,3})?)?"
)
_LIST = re.compile(rf"{_ACCEPTED}(?:, ?{_ACCEPTED})*")
"""Words, languages and media types: `gzip, br`, `en-US,en;q=0.9`, `private, max-age=0`."""
_DAY = re.compile(r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?:0{4}|0{6})?")
_CHARSETS = frozenset((*aliases, *aliases.values()))
_CODE_OF_STATUS = re.compile(r"^[1-5][0-9]{2} ")
_PHRASES = frozenset(status.phrase.lower() for status in HTTPStatus)
PLAIN = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_DIGITS = 4
"""Digits that count, from which on a number is no coincidence."""
_ID_DIGITS = 10
"""Digits from which on a whole number is an id."""
_SHORT = 5
"""Digits up to which a whole number may still be another's."""
_PRICE = re.compile(r"[0-9]{1,2}\.(?:[49]9|[49]5|[05]0)")
_THIRD = re.compile(r"[0-9]{0,2}?(?:3{3,}|6{2,}7?|9{3,})")
_PORTS = (3306, 5432, 6379, 8000, 8008, 8080, 8443, 8888, 9000, 9090, 9200, 11434, 27017)
_TIMES = (604800, 2592000, 2678400, 31536000, 31556952, 31622400)
_KNOWN = frozenset((*_PORTS, *_TIMES))
"""Ports, and seconds of a week, a month and a year."""
_CONSTANTS = ("314159265358979", "271828182845904", "141421356237309", "161803398874989")
"""First digits of numbers that everybody knows: pi, e, the root of two, the golden ratio."""
_ROWS = ("0123456789", "9876543210")
_FEW = 3
"""Different characters up to which a text is a line, or zeros."""


def is_telling(text: str) -> bool:
    """Say whether a text is in two places by no chance."""
    if PLAIN.fullmatch(text):
        return _number_tells(text)
    if _CODE.fullmatch(text) is not None:
        return True
    if _WORDS.fullmatch(text) is not None or _LIST.fullmatch(text) is not None:
        return False
    if re.sub("[- ]", "_", text[:64].lower()) in _CHARSETS:
        return False
    if _is_saying(text):
        return False
    if _CODE_OF_STATUS.sub("", text).lower() in _PHRASES or len(set(text)) < _FEW:
        return False
    return is_long(text)


def is_long(text: str) -> bool:
    """Say whether a text has so many signs that it may be telling, whatever they are."""
    if len(text.encode("utf-8", "surrogatepass")) >= MIN_VALUE:
        return True
    letters = any(map(str.isalpha, text))
    return len(text) >= ID and letters and any(map(str.isdigit, text))


def _is_saying(text: str) -> bool:
    """Say whether a text is a few words, perhaps with small numbers: a name, a state, a phrase, a quantity."""
    words = 0
    for field in text.split(None, 2 * _SAYING)[: 2 * _SAYING]:
        inner = field.strip("\"'.,;:!?()[]{}*$€£¥%&#…-–—/\\<>=|`~")
        if PLAIN.fullmatch(inner):
            if _number_tells(inner):
                return False
            words += 1
            continue
        for word in _JOINED.split(inner):
            # Scripts without capitals mostly have no blanks either: two signs are a word.
            told = _count_words(word)
            if told is None:
                return False
            words += told
        if words >= _SAYING:
            return False
    return True


def _count_words(word: str) -> int | None:
    """Give how many words a text without blanks and joints is: none if it is signs alone; None if it is no word."""
    if not word or _SIGNS.fullmatch(word):
        return 0
    if _PLAIN_WORD.fullmatch(word):
        return 1
    if not word.isalpha() or word.isascii():
        return None
    if word.islower() or word.isupper() or word.istitle():
        return 1
    return (len(word) + 1) // 2 if word.lower() == word.upper() else None


def _number_tells(text: str) -> bool:
    told = text.lstrip("+-")
    if "." in told and any(one.startswith(told.replace(".", "")) for one in _CONSTANTS):
        return False
    mantissa = re.sub(r"[eE].*", "", told)
    digits = mantissa.replace(".", "").strip("0")
    if len(digits) < _DIGITS or len(set(digits)) == 1 or any(digits in row for row in _ROWS):
        return False
    if _PRICE.fullmatch(told) or ("." in told and _THIRD.fullmatch(digits)):
        return False
    if not told.isdigit():
        return True
    number = int(told[:40])
    is_power = number & (number - 1) == 0 or number & (number + 1) == 0
    is_date = 1900 <= number < 2100 or _DAY.fullmatch(told) is not None
    return not (is_power or is_date or number in _KNOWN)


def may_be_an_amount(text: str) -> bool:
    """Say whether a text is a number that two things may have, as amounts have: with a fraction, or of fewer than ten digits."""
    digits = text.lstrip("+-")
    return PLAIN.fullmatch(text) is not None and (not digits.isdigit() or len(digits) < _ID_DIGITS)


def is_short_number(text: str) -> bool:
    """Say whether a whole number has so few digits that a count or a time may have the same."""
    digits = text.lstrip("+-")
    return digits.isascii() and digits.isdigit() and len(digits.strip("0")) <= _SHORT
