"""Tell a secret from a word: tests of a value that a format or a name has pointed at.

Each test reads the value alone, so its verdict is remembered by value. Letters are judged in pairs: two letters that follow one
another often in English and in names of programs count for a word, two that seldom do for a random value.

Source: measured on the standard library, large packages, documentation and recorded traffic (2026-11), with values drawn at random.
"""

import base64
import binascii
import math
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable
from functools import lru_cache, wraps
from inspect import unwrap
from itertools import combinations

import ahocorasick_rs

from ..records.credential_parts import read_text

_CACHE = 8192
_MOST_READ = 512
"""Bytes of a value that are read, a multiple of four; no format is told apart by what is behind them."""
_READ = 64
"""Characters that are counted at once."""
_LOGS = [0.0, *(count * math.log2(count) for count in range(1, _READ + 1))]
_ROUNDED = 1e-6
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_PAIRS = (
    "jrtsnnrjsiputugshutuqppoqi",
    "qlnlqjhhpqgrkjqmgpokrfhfpg",
    "tjoltmjsqhssnkulkqptqkjgod",
    "rmlqvmnjsihqkmrkgqqnqjjknh",
    "tottrtpmoiovsuorpvuumqptqj",
    "rjmlqqkgsdepkjsigropqfjemd",
    "oijjsinqqfeompnkdqrmpkhdfj",
    "tiijuiehrdjllkrheolqnegele",
    "qpsrqqsgmhmtsvtqirtujqfoeq",
    "jdiepdddjdheddnfdelfmdeded",
    "mikkshkioffmgmjkgkojkhnejd",
    "tnmqvukitgjtkmsnelrrrkkfqi",
    "tpjmumggqdinplrsdmpmogldki",
    "tksuuqtkrioolptoklsuqpkgng",
    "oqstnppiphprsvqsfurtsprpjk",
    "tjmntlinrdjrjjsqhsorplkfpd",
    "gefffedeeddjeghefiifqdeddd",
    "tmqqvnrjtfooqstnfsssqomgre",
    "qiqlwloqshooqmrrmmsurknjqe",
    "tlpovohvuglpnmsphtrtskolrk",
    "opomspnepdisqsnqetrskgejee",
    "rhhfthghpdehjilhdihhjeheee",
    "qgjmpifqsefmgopidpniggkhde",
    "nmqlomfiodekkfhoehkrhhglme",
    "jlkjojglmdemmnmqeoqqfjlfhh",
    "kdffqfdhmddiihnhdfgffdddgf",
)
"""A row for each first letter, a column for each second one: `q` is as often as chance, two letters more are e times as often."""
_COUNT = 0xFFFF
_TOLD = [0] * 65536
"""By two small letters as they are in memory: twice their odds, and a one below, so that one sum has odds and count."""
for _first, _row in zip(_LETTERS, _PAIRS, strict=True):
    for _second, _mark in zip(_LETTERS, _row, strict=True):
        _pair = int.from_bytes(f"{_first}{_second}".encode(), sys.byteorder)
        _TOLD[_pair] = ((ord(_mark) - ord("q")) << _COUNT.bit_length()) + 1
_CLASSES = bytes(
    46 if code in b"-_./" else ord("l") if 97 <= code <= 122 else ord("U") if 65 <= code <= 90 else ord("d") if 48 <= code <= 57 else ord("s")
    for code in range(256)
)  # fmt: skip
_BITS = _CLASSES.translate(bytes.maketrans(b"lUds.", bytes((1, 2, 4, 8, 16))))
_UNCHANGED = bytes(
    frozenset(range(32)) - {one ^ other for one, other in combinations((1, 2, 4, 8), 2)}
)
"""Bits that differ between neighbours of one class, and beside a sign that joins words."""
_CAPITALIZED = bytes((2, 1))
_PLACEHOLDERS = ahocorasick_rs.BytesAhoCorasick(
    [
        *(
            b"example",
            b"sample",
            b"dummy",
            b"placeholder",
            b"change-me",
            b"change_me",
            b"changeme",
            b"changeit",
            b"redacted",
        ),
        *(
            b"your-",
            b"your_",
            b"-here",
            b"_here",
            b"xxxx",
            b"****",
            b"...",
            b"000000",
            b"123456",
            b"abcdef",
            b"qwerty",
            b"deadbeef",
        ),
        *(
            b"foobar",
            b"${",
            b"{{",
            b"%(",
            b"insert",
            b"replace",
            b"fake",
            b"lorem",
            b"2345678",
            b"3456789",
            b"bcdefgh",
            *(b"a-za-z", b"a-z0-9"),  # a class of characters
        ),
    ]
)
"""What people write in the place of a secret, in small letters."""
_REPEATED = re.compile(rb"(.)\1{3,}", re.DOTALL)
_TO_BE_FILLED = re.compile(rb"<[a-z]", re.IGNORECASE)
_MUCH_REPEATED = ((6, 1), (5, 2), (4, 3))
"""From what length on so many runs of one character are no chance."""
_UUID = re.compile(rb"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_HEX = re.compile(rb"[0-9a-f]+|[0-9A-F]+")
_PREFIXED_KEY = re.compile(rb"0x(?![0-9a-fA-F]{40}\Z)[0-9a-fA-F]{32,}")
_VALUE = re.compile(rb"[A-Za-z0-9_./+=~!@#$%^*|&?,;:-]+")
_PLACE = re.compile(
    rb"(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]*)+|[a-z][a-z0-9+.-]*://.*|arn:.*|[A-Za-z]:\\.*|[\w-]+/[\w.-]+(?:/[\w.-]+)*\.[a-z]{1,5}|"
    rb"\d{4}-\d\d-\d\d.*|(?:[0-9A-Fa-f]{2}:){4,}[0-9A-Fa-f]{2}|v?\d+(?:\.\d+)+.*|0x[0-9a-fA-F]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|"
    rb"sha\d+[:-].*|#[0-9a-fA-F]{3,8}",
    re.DOTALL,
)
"""Paths, addresses, dates, fingerprints, versions, digests."""
_JOINED = re.compile(rb"[A-Za-z]{2,}\d{0,2}(?:[-_./:|,]+(?:[A-Za-z]{2,}\d{0,2}|\d{1,4}|[a-z]))+")
"""Words joined by signs, with short numbers."""
_WORD_AND_NUMBER = re.compile(
    rb"[^A-Za-z]?[A-Za-z]?[a-z]+[^A-Za-z0-9]?[0-9]+[^A-Za-z0-9]?|[A-Z]+[0-9]+"
)
_VARIABLE = re.compile(rb"\$\w.*|\$[({].*|%\w+%|<.*|\{.*|\[.*|`.*|.*\$\{.*|@.*", re.DOTALL)
_EXPRESSION = re.compile(rb"(?<!\w)[0-9]*+[A-Za-z_]\w*+[\[(].*[\])]|,\w+:\w+$", re.DOTALL)
"""A call or an item, from the beginning of its word on: from each letter on a long word would take its square."""
_PRINTABLE = re.compile(rb"[!-~]+")
_CODE = re.compile(
    rb"[$#@%]\{[^{}]+\}|\{\{.*\}\}|\$\(\w[^()]*\)|%\(\w+\)|<%.*%>|\(\?[:=!<P]|\.\*|\[\^|\[[A-Za-z0-9]-[A-Za-z0-9]|\]\{\d|\][+*]\)?|"
    rb"[A-Za-z_]{3}\(\)|\bfunction\b|\A[\w.$@-]{2,}[\[({].*[\])}]\Z|\A[\[({<].*[\])}>]\Z|\A[$@%:&*][A-Za-z_][\w.:/-]*%?\Z|"
    rb"\A[+,;.)\]|&?:\"'`].*[+,;(\[{|&?:=\"'`]\Z",
    re.DOTALL,
)
"""Of a template, a pattern, a call, an item or a variable, or code between two strings."""
_FILLED_IN = re.compile(
    rb"[$#@%]\{[^{}]+\}|\(\?[:=!<P]|\]\{\d+,?\d*\}|\A(?:process|import\.meta|os)\.env\.\w+\Z"
)
"""A template, a pattern, a variable of the environment in JavaScript."""
_OPEN = b"({<"
"""Signs that begin a template; one that does not end stays for no template."""
_JWT_ALGORITHM = re.compile(rb'"(?:alg|enc)"\s*:')
_ENDING = re.compile(rb"\.[A-Za-z][A-Za-z0-9]{0,4}\Z")
"""Of the name of a file."""
_REFERENCE = re.compile(rb"[a-z][a-z0-9+.-]*://|[a-z]{2,16}:/[A-Za-z]")
"""An address: a reference to where a secret is (`op://vault/item/field`, `ssm:/prod/db`) is none."""
_STATE = re.compile(
    rb"(?:expired|rotated|rotates|disabled|changed|unchanged|unset|not[-_]set|never|locked|hidden|masked|encrypted|missing|invalid|required|"
    rb"optional|pending|revoked|reset|stored|managed|generated|deleted|removed|created|updated)(?:[-_:/.]+(?:[a-z]{1,12}|\d{1,4}))+",
    re.IGNORECASE,
)
"""What became of a secret, and when: `rotated-2026-11-27`."""
_CAPITALIZED_WORDS = re.compile(rb"(?:[A-Z][a-z]+){3,}\d{0,4}")
_KNOWN_JWT = (
    b"SflKxwRJSMeKKF2QT4",
    b"dozjgNryP4J3jVmNHl",
    b"TJVA95OrM7E2cBab30",
    b"POstGetfAytaZS82wHcjoTyoqhMyxXiWdR7Nn7A29DNSl0EiXLdw",
)
"""Signatures of tokens that documentation prints."""
_WORDS = re.compile(
    rb"(?:user(?:name)?|pass(?:word|wd)?|pwd|admin|root|guest|postgres|scott|tiger|test(?:er)?|foo|bar|baz|secret|aladdin|open sesame|"
    rb"login|me|bob|alice|token|changeme|changeit|demo)[0-9]{0,3}",
    re.IGNORECASE,
)
_DUMMY = re.compile(rb"(?:dummy|fake)[-_\w]*[0-9]", re.IGNORECASE)
"""A made-up credential that is sent in its place: a tape plays with it."""
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _remembered(test: Callable[[bytes], bool]) -> Callable[[bytes], bool]:
    """Have a test remember its verdicts; of a long value it reads the first `_MOST_READ` bytes."""
    remembered = lru_cache(maxsize=_CACHE)(test)

    @wraps(test)
    def judge(value: bytes) -> bool:
        return remembered(value if len(value) <= _MOST_READ else value[:_MOST_READ])

    return judge


def not_remembered(test: Callable[[bytes], bool]) -> Callable[[bytes], bool]:
    """Give a test that remembers no verdict: of what is asked once, the verdict would have others forgotten."""
    plain = unwrap(test)
    return lambda value: plain(value[:_MOST_READ])


def _is_placeholder(value: bytes) -> bool:
    """Say whether somebody wrote a value in the place of a secret, as an example or to be filled in."""
    if _PLACEHOLDERS.find_matches_as_indexes(value.lower()):
        return True
    if value[:1] == b"<" and _TO_BE_FILLED.match(value):
        return True
    return b"\0\0\0" in _compare_neighbours(value) and _is_much_repeated(value)


is_placeholder = _remembered(_is_placeholder)


def _is_much_repeated(value: bytes) -> bool:
    runs = [len(run[0]) for run in _REPEATED.finditer(value.lower())]
    return any(sum(run >= size for run in runs) >= count for size, count in _MUCH_REPEATED)


def _compare_neighbours(value: bytes) -> bytes:
    """Give for each character but the first its bits that the one before it has otherwise."""
    number = int.from_bytes(value)
    return (number ^ number >> 8).to_bytes(len(value))[1:]


def entropy(value: bytes) -> float:
    """Give the bits a character of a value, by how often each character is in it."""
    size = len(value)
    if not size:
        return 0.0
    total = 0.0
    # Each is the faster one for its sizes.
    counts = Counter(value).values() if size >= 96 else map(value.count, set(value))
    for count in counts:
        total += _LOGS[count] if count <= _READ else count * math.log2(count)
    return math.log2(size) - total / size


def _has_entropy(value: bytes, least: float) -> bool:
    """Say whether a value has so many bits a character.

    Random ones have more than enough, by the number of different characters in each part: it has the least where one of them is all
    the others, and a value has no less than its parts.
    """
    size = len(value)
    if 0 < size <= _READ:
        known = _LOGS[size] - _LOGS[size - len(set(value)) + 1]
    else:
        known = 0.0
        for at in range(0, size, _READ):
            part = value[at : at + _READ]
            known += _LOGS[len(part)] - _LOGS[len(part) - len(set(part)) + 1]
    return known > (least + _ROUNDED) * size or entropy(value) >= least


def wordiness(value: bytes) -> float:
    """Give how much its pairs of letters read like words: negative for random letters, 0 without any pair."""
    total, count = _sum_pairs(value)
    return total / count if count else 0.0


def _pairs(value: bytes) -> int:
    return _sum_pairs(value)[1]


@lru_cache(maxsize=64)
def _sum_pairs(value: bytes) -> tuple[float, int]:
    """Give the odds of all pairs of letters together, and how many pairs there are."""
    lower, end = value.lower(), len(value)
    told = 0
    for at in (0, 1):  # each second pair
        pairs = memoryview(lower)[at : at + (end - at) // 2 * 2].cast("H")
        told += sum(map(_TOLD.__getitem__, pairs))
    count = told & _COUNT
    return (told >> _COUNT.bit_length()) / 2, count


def _count_turns(value: bytes) -> int:
    """Count changes between small letters, capitals, digits and signs, less those of names of programs."""
    marks = value.translate(_BITS)
    return len(_compare_neighbours(marks).translate(None, _UNCHANGED)) - marks.count(_CAPITALIZED)


turns = lru_cache(maxsize=_CACHE)(_count_turns)


def _is_like(pattern: re.Pattern[bytes], value: bytes) -> bool:
    """Say whether a value is of a pattern that has a sign in it: most have none, and are not asked."""
    return not value.isalnum() and pattern.fullmatch(value) is not None


def _is_value(value: bytes) -> bool:
    return value.isalnum() or _VALUE.fullmatch(value) is not None


def _is_place(value: bytes) -> bool:
    return (value[:2] == b"0x" or not value.isalnum()) and _PLACE.fullmatch(value) is not None


def _has_expression(value: bytes) -> bool:
    return not value.isalnum() and _EXPRESSION.search(value) is not None


@_remembered
def is_random(value: bytes) -> bool:
    """Say whether what follows the prefix of a known format is random, and no words."""
    if is_placeholder(value):
        return False
    size = len(value)
    if not _has_entropy(value, 2.6 if size < 24 else 3.0):
        return False
    odds = wordiness(value)
    if size < 64 and not any(48 <= code <= 57 for code in value):
        return odds <= -0.6
    return not (_pairs(value) >= 10 and odds > 0.55) and not (
        odds > -0.3 and _is_like(_JOINED, value)
    )


@_remembered
def is_hex(value: bytes) -> bool:
    """Say whether hexadecimal digits behind the prefix of a known format are random."""
    digits = value.replace(b"-", b"").replace(b"_", b"").replace(b".", b"")
    return (
        not is_placeholder(value)
        and _has_entropy(digits, 2.9)
        and any(48 <= code <= 57 for code in digits)
        and any(code > 57 for code in digits)
    )


@_remembered
def is_prefixed_key(value: bytes) -> bool:
    """Say whether a value is a key in hexadecimal digits behind `0x`; 40 digits are an address of a blockchain."""
    return bool(_PREFIXED_KEY.fullmatch(value)) and is_hex(value[2:])


def has_checksum(value: bytes) -> bool:
    """Say whether the last six characters are the CRC-32 of those before, as GitHub and npm write it."""
    number = zlib.crc32(value[:-6])
    digits = ""
    while number:
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return value[-6:] == digits.rjust(6, "0").encode()


@_remembered
def is_checked(value: bytes) -> bool:
    """Say whether a token with a checksum is one: the checksum fits, or it reads like a random value."""
    return has_checksum(value) or is_random(value)


@_remembered
def is_token_header(value: bytes) -> bool:
    """Say whether the first part of a JSON Web Token decodes and names an algorithm."""
    head = value.partition(b".")[0]
    try:
        plain = base64.urlsafe_b64decode(head + b"=" * (-len(head) % 4))
    except (binascii.Error, ValueError):
        return False
    return bool(_JWT_ALGORITHM.search(plain)) and not any(known in value for known in _KNOWN_JWT)


@_remembered
def is_basic(value: bytes) -> bool:
    """Say whether base64 is a user and a password, of which not both are words of documentation."""
    try:
        plain = base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    user, colon, password = plain.partition(b":")
    if not colon or not plain.isascii() or any(code < 32 for code in plain):
        return False
    return not (_WORDS.fullmatch(user) and _WORDS.fullmatch(password)) and bool(user or password)


@_remembered
def is_strong(value: bytes) -> bool:
    """Say whether a value behind a telling name is random: no word, path, URL, date, version, fingerprint or placeholder."""
    size = len(value)
    if size < 12:
        return False
    if value.isalnum():
        # Nobody else asks about one of these, so the verdict is not worth being remembered.
        if _is_placeholder(value) or (value[:2] == b"0x" and _is_place(value)):
            return False
    elif not _VALUE.fullmatch(value) or is_placeholder(value) or _is_place(value):
        return False
    digits = value.translate(_CLASSES).count(b"d")
    if _HEX.fullmatch(value) or _is_like(_UUID, value):
        return digits >= 3 and digits < size and _has_entropy(value, 2.9)
    if _is_like(_VARIABLE, value) or not _has_entropy(value, 3.2 if size >= 20 else 2.9):
        return False
    odds = wordiness(value)
    if odds > -0.6 and _is_like(_JOINED, value):
        return False
    changes = turns(value)
    if not digits:
        return changes >= 0.28 * size and odds < 0.2
    return (
        (changes >= 0.3 * size and changes >= 4 and odds < 0.9)
        or (digits >= 2 and changes >= 0.12 * size and odds < -0.25)
        or (changes >= 3 and odds < -0.9)
    )


@_remembered
def is_generated(value: bytes) -> bool:
    """Say whether a value that is delimited, behind a telling name, was drawn at random from letters, digits and signs of any kind.

    Brackets and signs are those of templates, calls and patterns, too: what has the form of one of these stays.
    """
    size = len(value)
    if not 12 <= size <= 256:
        return False
    marks = value.translate(_CLASSES)
    if (
        b"s" not in marks
        or not _PRINTABLE.fullmatch(value)
        or is_placeholder(value.translate(None, _OPEN))
        or _CODE.search(value)
        or _is_place(value)
    ):
        return False
    if _JOINED.fullmatch(value) or not _has_entropy(value, 3.2 if size >= 20 else 2.9):
        return False
    changes, odds = turns(value), wordiness(value)
    kinds = sum(mark in marks for mark in b"lUd")
    return kinds >= 2 and changes >= max(6, 0.35 * size) and odds < (0.9 if kinds == 3 else 0.2)


@_remembered
def is_key_like(value: bytes) -> bool:
    """Say whether a value behind a name that mostly is harmless is a key: long, of all classes, and no path, name of a file or UUID."""
    marks = value.translate(_CLASSES)
    path = b"/" in value and not (len(value) >= 40 and value.endswith(b"="))
    return (
        len(value) >= 24
        and all(mark in marks for mark in b"lUd")
        and not path
        and not _ENDING.search(value)
        and is_strong(value)
    )


@_remembered
def is_shaped(value: bytes) -> bool:
    """Say whether a value has the shape of a secret: by classes of characters alone, so that its placeholder has it too."""
    size = len(value)
    if size < 16:
        return False
    if not _is_like(_UUID, value) and (not _is_value(value) or _is_place(value)):
        return False
    if value.isalnum():
        mixed = not (value.isalpha() or value.isdigit())
    else:
        marks = value.translate(_CLASSES)
        mixed = b"d" in marks and (b"l" in marks or b"U" in marks)
    mixed = mixed or read_text(value) is not None  # whose placeholder may have no digit
    return mixed and _count_turns(value) >= max(3, 0.12 * size)


def _is_wordy(value: bytes) -> bool:
    """Say whether a long value is words, in spite of digits and signs in it."""
    joined = any(sign in value for sign in (b"-", b"_", b"/", b"+"))
    return (
        len(value) >= 20 and not joined and wordiness(value) > 0.6 and turns(value) * 5 < len(value)
    )


@_remembered
def is_middle(value: bytes) -> bool:
    """Say whether a value of a line of settings is a password: strong, or short and mixed."""
    if is_strong(value):
        return True
    if (
        not 8 <= len(value) <= 64
        or is_placeholder(value)
        or _has_expression(value)
        or _is_wordy(value)
        or _is_like(_VARIABLE, value)
        or _is_place(value)
    ):
        return False
    marks = set(value.translate(_CLASSES))
    return (
        100 in marks
        and len(marks) >= 3
        and turns(value) >= 2
        and not _WORD_AND_NUMBER.fullmatch(value)
    )


@_remembered
def is_loose(value: bytes) -> bool:
    """Say whether a value in a place for passwords may be one: no placeholder, no variable, no plain word."""
    if (
        len(value) < 6
        or (is_placeholder(value) and not _DUMMY.match(value))
        or _is_like(_VARIABLE, value)
        or _WORDS.fullmatch(value)
        or (not value.isalnum() and (_FILLED_IN.search(value) or _STATE.fullmatch(value)))
    ):
        return False
    if (
        value.startswith((b"/", b"./", b"http"))
        or _REFERENCE.match(value)
        or not _has_entropy(value, 2.2)
        or _has_expression(value)
    ):
        return False
    if _is_wordy(value):
        return False
    marks = set(value.translate(_CLASSES))
    if 100 in marks and len(marks) > 1:
        return True
    return (
        len(marks) > 1
        and (108 in marks and 85 in marks)
        and turns(value) >= 2
        and wordiness(value) < 0.6
    )


def is_declared(value: bytes, *, password: bool) -> bool:
    """Say whether a member whose name says that it is a secret is one, and no word or placeholder.

    password: whether people make it up.
    """
    if b" " in value or not is_loose(value):
        return False
    digits = value.translate(_CLASSES).count(b"d")
    if not password and _CAPITALIZED_WORDS.fullmatch(value) and wordiness(value) > 0.8:
        return False
    if password or is_strong(value) or is_middle(value) or _DUMMY.match(value):
        return True
    return len(value) >= 16 and digits >= 4


TESTS: dict[str, Callable[[bytes], bool]] = {
    "random": is_random,
    "padded": lambda value: is_random(value.lstrip(b"A")),
    "hex": is_hex,
    "checksum": is_checked,
    "header": is_token_header,
    "strong": is_strong,
    "none": lambda _value: True,
}
"""The tests by the names under which the tables give them."""


IBAN_SIZES = {
    country: int(size)
    for size, countries in (
        *(("15", "NO"), ("16", "BE"), ("18", "DK FI FO GL NL SD"), ("19", "MK SI"), ("20", "AT BA EE KZ LT LU XK")),
        *(("21", "CH HR LI LV"), ("22", "BG BH CR DE GB GE IE ME RS VA"), ("23", "AE GI IL IQ OM SO TL")),
        *(("24", "AD CZ ES MD PK RO SA SE SK TN VG"), ("25", "LY PT ST"), ("26", "IS TR"), ("27", "BI DJ FR GR IT MC MR SM")),
        *(("28", "AL AZ BY CY DO GT HU LB NI PL SV"), ("29", "BR EG PS QA UA"), ("30", "JO KW MU YE"), ("31", "MT SC"), ("32", "LC"), ("33", "RU")),
    )
    for country in countries.split()
}  # fmt: skip
"""Characters of an IBAN by its country (the registry of ISO 13616)."""


def is_card(digits: bytes) -> bool:
    """Say whether digits have the check digit of a card (ISO/IEC 7812)."""
    return 13 <= len(digits) <= 19 and luhn_rest(digits) == 0 and len(frozenset(digits)) > 1


def is_iban(plain: bytes) -> bool:
    """Say whether letters and digits have the check digits of an IBAN (ISO 13616)."""
    return 15 <= len(plain) <= 34 and iban_rest(plain) == 1


def luhn_rest(digits: bytes) -> int:
    """Give what the check digit of a card lacks, 0 where it is right (ISO/IEC 7812)."""
    total = 0
    for place, code in enumerate(reversed(digits)):
        number = (code - 48) * (1 + place % 2)
        total += number - 9 * (number > 9)
    return total % 10


def iban_rest(plain: bytes) -> int:
    """Give what the check digits of an IBAN leave, 1 where they are right (ISO 13616)."""
    return int("".join(str(int(chr(code), 36)) for code in plain[4:] + plain[:4])) % 97
