"""What one text of the configuration means: each function parses one kind of value.

A value that is wrong raises ValueError, whose text says what is wrong and what would be right. Where
the value stands, and in which file, is for the caller to add. Digits are ASCII digits: `int` and `float`
alone would also take `1_0`, `inf` and the digits of other scripts.
"""

import difflib
import os.path
import posixpath
import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .match_pattern import Match, parse_match
from .value_types import CONFIG_VERSION, LATEST, Listen, Mode, ModelDrift

_SHOWN = 60
"""Characters of a wrong value that are shown back."""
_MAX_DURATION_S = 36_500 * 86_400.0
_MAX_PACE = 1000.0
_MAX_RUN_NAME = 200
"""Bytes as UTF-8: names are keys of the store, and playback adds a suffix to them."""
_OF_A_PAGE = re.compile(r"~+\.\.?")
_NUMBERED = re.compile(r"(?P<sign>[@~])\d+\Z", re.ASCII)
_MAX_MATCH = 2000
_MAX_FAULT_NAME = 100
MAX_MODEL_NAME = 500
"""Characters of a model's name where it is to be typed."""
_MAX_JSON_PATH = 1000
_MAX_REGEX = 1000

_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?", re.ASCII)
_USD = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?", re.ASCII)
_DURATION = re.compile(rf"(?P<number>{_NUMBER.pattern}) ?(?P<unit>ms|s|m|h|d)?", re.ASCII)
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, None: 1.0}
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")
_LISTEN = re.compile(r"(?:\[(?P<v6>[^\[\]]*)\]|(?P<host>[^:\[\]]*)):(?P<port>[0-9]{1,5})")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
"""A field name: RFC 9110 section 5.6.2."""
_FIELD_VALUE = re.compile(r"(?:[!-~](?:[ \t!-~]*[!-~])?)?")
"""RFC 9110 section 5.5 without its obsolete bytes."""
_JSON_STEP = re.compile(
    r"""\.(?P<any>\*)|\.(?P<name>[^\s.\[\]'"*]+)|\['(?P<quoted>[^']*)'\]"""
    r"""|\[(?P<index>[0-9]{1,9})\]|\[(?P<each>\*)\]"""
)


def show(text: str) -> str:
    """Render a wrong value for a message: quoted, one line, cut."""
    shown = repr(text[: _SHOWN + 1])
    return shown if len(shown) <= _SHOWN + 2 else f"{shown[:_SHOWN]}...'"


def suggest(text: str, known: Iterable[str]) -> str:
    """Say which of the known words was probably meant, or nothing."""
    near = difflib.get_close_matches(text.lower(), known, n=1) if len(text) <= _SHOWN else []
    return f"did you mean {near[0]!r}? " if near else ""


class Choice[T]:
    """A parser that takes one of a few words."""

    def __init__(self, words: Mapping[str, T], what: str = "value") -> None:
        """Take these words, each for what it means; `what` is what they are called where one is unknown."""
        self._words = words
        self._what = what

    def __call__(self, text: str) -> T:
        """Parse a word. Raises: ValueError."""
        if text in self._words:
            return self._words[text]
        expected = f"expected {_one_of(tuple(self._words))}"
        raise ValueError(
            f"unknown {self._what} {show(text)}; {suggest(text, self._words)}{expected}"
        )

    @property
    def shape(self) -> dict[str, Any]:
        """Its JSON Schema."""
        truths = [word == "true" for word in self._words if word in ("true", "false")]
        return {"enum": [*self._words, *truths]}


def choice(*words: str) -> Choice[str]:
    """Give a parser that takes one of these words."""
    return Choice({word: word for word in words})


def member[E: StrEnum](kind: type[E], what: str = "value") -> Choice[E]:
    """Give a parser of the members of an enumeration."""
    return Choice({one.value: one for one in kind}, what)


parse_yes = Choice({"true": True, "false": False})
parse_mode = member(Mode, "mode")


class Integer:
    """A parser of whole numbers between two bounds, both included."""

    def __init__(self, low: int, high: int) -> None:
        self._low = low
        self._high = high

    def __call__(self, text: str) -> int:
        """Parse a number. Raises: ValueError."""
        if re.fullmatch(r"[0-9]{1,9}", text) and self._low <= int(text) <= self._high:
            return int(text)
        raise ValueError(f"{show(text)} is not a whole number between {self._low} and {self._high}")

    @property
    def shape(self) -> dict[str, Any]:
        """Its JSON Schema."""
        return {"type": "integer", "minimum": self._low, "maximum": self._high}


parse_port = Integer(1, 65535)


def parse_version(text: str) -> int:
    """Parse the version of a configuration file.

    Raises: ValueError, whose text says what would be right.
    """
    if re.fullmatch(r"[1-9][0-9]{0,8}", text):
        if int(text) <= CONFIG_VERSION:
            return int(text)
        raise ValueError(
            f"{text}, but this version of Playhead reads up to {CONFIG_VERSION}; use a newer Playhead"
        )
    raise ValueError(f"{show(text)} is no version; expected {CONFIG_VERSION}, or leave the key out")


def parse_usd(text: str) -> Decimal:
    """Parse an amount of money above zero, as `5.00`: at most 6 digits behind the point.

    Raises: ValueError, whose text says what would be right.
    """
    amount = Decimal(text) if _USD.fullmatch(text) else Decimal(0)
    if amount > 0:
        return amount
    raise ValueError(f"{show(text)} is no amount of US dollars above 0; expected one as 5.00")


def parse_model_drift(text: str) -> ModelDrift:
    """Parse `RECORDED=NEW`, two names of models.

    Raises: ValueError, whose text says what would be right.
    """
    recorded, equals, asked = (part.strip() for part in text.partition("="))
    expected = "expected RECORDED=NEW, the model on the tape and the one that is asked for now"
    if not equals:
        name = recorded if _is_model_name(recorded) else "gpt-5"
        same = f"for changes other than of the model name it twice, as {show(f'{name}={name}')}"
        raise ValueError(f"{show(text)} names one model; {expected}; {same}")
    if not recorded:
        raise ValueError(f"{show(text)} does not name the model on the tape; {expected}")
    if not asked:
        raise ValueError(f"{show(text)} does not name the model that is asked for; {expected}")
    for name in (recorded, asked):
        if not _is_model_name(name):
            raise ValueError(
                f"{show(name)} is no name of a model; expected printable text of at most"
                f" {MAX_MODEL_NAME} characters"
            )
    return ModelDrift(recorded, asked)


def _is_model_name(text: str) -> bool:
    return 0 < len(text) <= MAX_MODEL_NAME and text.isprintable()


def parse_duration(text: str) -> float:
    """Parse `10s`, `500ms`, `5m`, `72h`, `7d` or a plain number of seconds; gives seconds.

    Raises: ValueError, whose text says what would be right; also above 36500 days.
    """
    found = _DURATION.fullmatch(text)
    if not found:
        raise ValueError(
            f"{show(text)} is no duration; expected a number with ms, s, m, h or d, as '10s',"
            " or a number of seconds"
        )
    seconds = float(found["number"]) * _UNIT_S[found["unit"]]
    if seconds > _MAX_DURATION_S:
        raise ValueError(f"{show(text)} is too long; expected at most 36500d")
    return seconds


def parse_kept(text: str) -> float:
    """Parse after how long something may be deleted: as a duration, but for a number without its unit, which may be meant as days.

    Raises: ValueError, whose text says what would be right.
    """
    seconds = parse_duration(text)
    if seconds and text[-1].isdigit():
        raise ValueError(f"{show(text)} has no unit; expected one, as {text}d or {text}h")
    return seconds


def parse_keep(text: str) -> float | None:
    """Parse how long something is kept: `forever` is None, else seconds.

    Raises: ValueError, whose text says what would be right.
    """
    if text == "forever":
        return None
    try:
        return parse_kept(text)
    except ValueError as error:
        raise ValueError(f"{error}; or `forever`") from error


LABEL_RULE = "expected 1 to 60 letters, digits, `.`, `_`, `-` or `/`"
_LABEL_TEXT = re.compile(r"[A-Za-z0-9._/-]{1,60}")


def is_label(text: str) -> bool:
    """Say whether a text can be a label of a run; `LABEL_RULE` tells people."""
    return _LABEL_TEXT.fullmatch(text) is not None


def parse_pace(text: str) -> float:
    """Parse a pace: 0 for `instant`, 1 for `recorded`, otherwise the factor.

    Raises: ValueError, whose text says what would be right; also above 1000.
    """
    if text in ("instant", "recorded"):
        return 0.0 if text == "instant" else 1.0
    factor = float(text) if _NUMBER.fullmatch(text) else 0.0
    if not 0 < factor <= _MAX_PACE:
        raise ValueError(
            f"{show(text)} is no pace; expected instant, recorded or a number above 0,"
            " at most 1000, by which the recorded gaps are multiplied"
        )
    return factor


_compared = choice("stdout", "files")


def parse_compare(text: str) -> tuple[str, ...]:
    """Parse what of a command is compared: words with commas between them; `none` is no word.

    Raises: ValueError, whose text says what would be right.
    """
    return () if text == "none" else tuple(dict.fromkeys(map(_compared, text.split(","))))


def parse_listen(text: str) -> Listen:
    """Parse `HOST:PORT`, an IPv6 address in brackets; port 0 takes a free one.

    Raises: ValueError, whose text says what would be right.
    """
    expected = "expected HOST:PORT, as 127.0.0.1:8080 or '[::1]:8080'"
    found = _LISTEN.fullmatch(text)
    if not found:
        raise ValueError(f"{show(text)} is no listen address; {expected}")
    if not found["v6"] and not found["host"]:
        raise ValueError(f"{show(text)} names no host; {expected}")
    port = int(found["port"])
    if port > 65535:
        raise ValueError(f"{show(text)}: port {port} is above 65535")
    bracketed = found["v6"] is not None
    host = parse_host(found["v6"] if bracketed else found["host"])
    if bracketed and ":" not in host:
        raise ValueError(f"{show(text)}: brackets are for IPv6 addresses; {expected}")
    return Listen(host, port)


def parse_control_listen(text: str) -> Listen | None:
    """Parse `HOST:PORT` of the control API, or `off`, which gives None.

    Raises: ValueError, whose text says what would be right.
    """
    if text == "off":
        return None
    try:
        return parse_listen(text)
    except ValueError as error:
        raise ValueError(f"{error}; or off") from None


def parse_host(text: str) -> str:
    """Parse one host, a name or an IP address, without scheme, port or path; gives it in lower case.

    Raises: ValueError, whose text says what would be right.
    """
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if ":" in bare and "%" not in bare:
        try:
            return str(IPv6Address(bare))
        except ValueError:
            pass
    # A last label of digits makes it an IPv4 address, whatever a resolver makes of 127.1.
    last = bare.rpartition(".")[2]
    if bare == text and _HOST_NAME.fullmatch(text) and (not last.isdigit() or _is_ip(text)):
        return text.lower()
    raise ValueError(
        f"{show(text)} is no host; expected one name or IP address, without scheme, port, path or *"
    )


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Say whether a host can be reached from this machine alone, without asking a resolver."""
    return host == "localhost" or (_is_ip(host) and ip_address(host).is_loopback)


def parse_sink_url(text: str) -> str:
    """Parse the URL that effects are posted to: http or https, without credentials.

    Raises: ValueError, whose text says what would be right; credentials are not shown.
    """
    expected = "expected one as http://127.0.0.1:9000/effects"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"no URL: {error}; {expected}") from None
    if "@" in parts.netloc:
        raise ValueError(f"the URL holds credentials, which would be kept in the file; {expected}")
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ValueError(f"{show(text)} is no URL of a receiver; {expected}")
    if not text.isascii() or not text.isprintable() or " " in text or parts.fragment:
        raise ValueError(f"{show(text)} holds what a URL may not; {expected}")
    parse_host(parts.hostname)
    return text


def url_host(url: str) -> str:
    """Give the host of a URL that has been parsed."""
    return urlsplit(url).hostname or ""


def parse_run_name(text: str) -> str:
    """Parse the name of a run: printable, without a colon, at most 200 bytes.

    Raises: ValueError, whose text says what would be right.
    Source: RFC 7617 section 2, a user name in credentials cannot hold a colon.
    """
    good = text.isprintable() and text == text.strip() and ":" not in text
    if good and 0 < len(text.encode()) <= _MAX_RUN_NAME:
        return text
    raise ValueError(
        f"{show(text)} is no run name; expected printable text without a colon, at most"
        f" {_MAX_RUN_NAME} bytes"
    )


def parse_new_run_name(text: str) -> str:
    """Parse the name of a run that is about to be recorded: none that stands for something else, and none like an option.

    Names of this kind that a store has from before can still be read.
    Raises: ValueError, whose text says what would be right.
    """
    parse_run_name(text)
    if text.startswith("-"):
        raise ValueError(
            f"{show(text)} begins with `-`, as an option does: was the name left out? Expected a name, as in --run refund"
        )
    if _OF_A_PAGE.fullmatch(text):
        raise ValueError(
            f"{show(text)} is reserved: in the address of a page it stands for another run; expected another name"
        )
    if text == LATEST:
        raise ValueError(
            f"{show(text)} is reserved: it stands for the newest recording; expected another name"
        )
    if found := _NUMBERED.search(text):
        kind = "playbacks" if found["sign"] == "@" else "later recordings of one name"
        raise ValueError(
            f"{show(text)} is reserved: Playhead itself gives names that end in {show(found[0])} to {kind};"
            " expected another name"
        )
    return text


def parse_token(text: str) -> str:
    """Parse the token of a run; what is wrong is said without showing it.

    Raises: ValueError, whose text says what would be right.
    """
    if text and text.isprintable() and len(text) <= 1000:
        return text
    raise ValueError("the token is not usable; expected printable text, at most 1000 characters")


def parse_reason(text: str) -> str:
    """Parse the reason of something that goes live; gives it as one line.

    Raises: ValueError, whose text says what would be right.
    """
    reason = " ".join(text.split())
    if reason and reason.isprintable():
        return reason
    raise ValueError("the reason is empty or not printable; expected why this may go live")


def parse_place(text: str) -> Path:
    """Parse the path of a file or folder; `~` at its start is the person's home.

    Raises: ValueError, whose text says what would be right.
    """
    if text.strip() and text.isprintable():
        # os.path leaves `~` as it is where there is no home; Path.expanduser raises.
        return Path(os.path.expanduser(text) if text.startswith("~/") else text)
    raise ValueError(f"{show(text)} is no path; expected the path of a file or folder")


def parse_image(text: str) -> str:
    """Parse the name of an image of Docker's.

    Raises: ValueError, whose text says what would be right.
    """
    if text.isprintable() and text.split() == [text] and not text.startswith("-"):
        return text
    raise ValueError(f"{show(text)} is no image; expected its name, as `docker run` takes it")


def parse_pattern(text: str) -> Match:
    """Parse a match pattern of a sane length; see `config/match_pattern.py`.

    Raises: ValueError, whose text says what would be right.
    """
    if len(text) > _MAX_MATCH:
        raise ValueError(f"{show(text)} is no match pattern: longer than {_MAX_MATCH} characters")
    return parse_match(text)


def parse_live_match(text: str) -> Match:
    """Parse what a live rule speaks of: a match pattern; `tcp://HOST:PORT` or `unix:///PATH` for a service of this machine.

    Raises: ValueError, whose text says what would be right.
    """
    if text.startswith("unix:"):
        return _parse_socket(text)
    if not text.startswith("tcp://"):
        return parse_pattern(text)
    expected = "expected a service of this machine with its port, as tcp://127.0.0.1:5432"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ValueError(f"{show(text)}: {error}; {expected}") from None
    if not port or not is_loopback(host) or text.partition("://")[2] != parts.netloc:
        raise ValueError(f"{show(text)} is no such service; {expected}")
    if port in (80, 443):
        raise ValueError(f"{show(text)}: port {port} is HTTP, which is recorded; {expected}")
    return Match(text, frozenset(), "tcp", "127.0.0.1" if host == "localhost" else host, port, "")


def _parse_socket(text: str) -> Match:
    path = "/" + text.removeprefix("unix:").lstrip("/")
    plain = posixpath.normpath(path) == path and "\0" not in path and path != "/"
    if not text.startswith("unix:/") or not plain:
        expected = "expected the whole path of a socket, as unix:///tmp/mysql.sock"
        raise ValueError(f"{show(text)} is no such service; {expected}")
    return Match(text, frozenset(), "unix", "", None, path)


def parse_header_name(text: str) -> str:
    """Parse the name of a header field, as written.

    Raises: ValueError, whose text says what would be right.
    """
    if _TOKEN.fullmatch(text):
        return text
    raise ValueError(f"{show(text)} is no header name; expected one as x-request-id")


def parse_field_name(text: str) -> str:
    """Parse the name of a header field; gives it in lower case.

    Raises: ValueError, whose text says what would be right.
    """
    return parse_header_name(text).lower()


def parse_header_value(text: str) -> str:
    """Parse the value of a header field: printable ASCII.

    Raises: ValueError, whose text says what would be right; the value is not shown.
    """
    if _FIELD_VALUE.fullmatch(text):
        return text
    raise ValueError("the header's value is not usable; expected printable ASCII on one line")


def parse_fault_name(text: str) -> str:
    """Parse the name of a fault: it stands in header fields and on one line of a receipt.

    Raises: ValueError, whose text says what would be right.
    """
    if text and len(text) <= _MAX_FAULT_NAME and _FIELD_VALUE.fullmatch(text):
        return text
    raise ValueError(
        f"{show(text)} is no name; expected printable ASCII of at most {_MAX_FAULT_NAME} characters"
    )


def parse_share(text: str) -> float:
    """Parse a part of all: above 0, up to 1.

    Raises: ValueError, whose text says what would be right.
    """
    share = float(text) if _NUMBER.fullmatch(text) else 0.0
    if not 0 < share <= 1:
        raise ValueError(f"{show(text)} is no share; expected a number above 0, up to 1, as 0.1")
    return share


def parse_parameter(text: str) -> str:
    """Parse the name of a query parameter or form field.

    Raises: ValueError, whose text says what would be right.
    """
    if text and text.isprintable():
        return text
    raise ValueError(f"{show(text)} is no parameter; expected its name, printable and not empty")


def parse_base64(text: str) -> bytes:
    """Parse base64, white space aside.

    Raises: ValueError, whose text says what would be right.
    """
    try:
        return b64decode("".join(text.split()), validate=True)
    except (Base64Error, ValueError) as error:
        raise ValueError(f"{show(text)} is no base64: {str(error).lower()}") from None


def parse_json_path(text: str) -> tuple[str | int | None, ...]:
    """Parse a JSON path into its steps: a name, an index, or None for every member.

    Grammar: `$`, then any of `.name`, `['name']`, `[3]`, `[*]`, `.*`; at least one; at most
    1000 characters.
    Raises: ValueError, whose text says what would be right.
    """
    expected = "expected $ and then .name, ['name'], [3], [*] or .*, as $.items[*].ts"
    if not text.startswith("$") or text == "$" or len(text) > _MAX_JSON_PATH:
        raise ValueError(f"{show(text)} is no JSON path; {expected}")
    steps: list[str | int | None] = []
    at = 1
    while at < len(text):
        found = _JSON_STEP.match(text, at)
        if not found:
            raise ValueError(
                f"{show(text)} is no JSON path from its character {at + 1} on; {expected}"
            )
        if found["index"] is not None:
            steps.append(int(found["index"]))
        else:
            # Unnamed alternatives are None, and None is every member.
            steps.append(found["name"] if found["quoted"] is None else found["quoted"])
        at = found.end()
    return tuple(steps)


def check_json_path(text: str) -> str:
    """Give a JSON path as written once it has parsed.

    Raises: ValueError, whose text says what would be right.
    """
    parse_json_path(text)
    return text


_VOLATILE = "expected one as 'req_[0-9a-f]+', with a group around the volatile part if that is less"
_SECRET = "expected one as 'acme_[0-9a-f]{16,}', with a group around the secret where that is less"


def check_regex(text: str, expected: str = _VOLATILE) -> str:
    """Give a regular expression as written once it has compiled: RE2's, of at most 1000 characters.

    expected: what would be right.
    Raises: ValueError, whose text says so.
    """
    if not text or len(text) > _MAX_REGEX:
        what = "empty" if not text else f"longer than {_MAX_REGEX} characters"
        raise ValueError(f"{show(text)} is no regular expression: {what}; {expected}")
    try:
        compile_regex(text)
    except ValueError as error:
        raise ValueError(f"{show(text)} is no regular expression: {error}; {expected}") from None
    return text


_SINGLE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")
_MANY = re.compile(r"(?<!\\)\{[0-9]*,?[0-9]{5,}")


def compile_regex(text: str) -> Any:
    """Compile a regular expression for UTF-8, as RE2 reads it: its time grows with the length of a text alone.

    Raises: ValueError, whose text says what is wrong: RE2 knows neither looking around nor going back to a group.
    """
    import re2  # for those who have such rules: not for a start

    if _SINGLE_BYTE.search(text):
        raise ValueError(r"\C, a part of a character, is not allowed")
    if _MANY.search(text):
        # Which RE2 would read as characters.
        raise ValueError("more than 1000 repetitions")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text.encode(), options)
    except UnicodeEncodeError:
        raise ValueError("it holds half of a character") from None
    except re2.error as error:
        told = error.args[0] if error.args else b""
        what = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
        raise ValueError(f"{what} (patterns are RE2's)") from None


SECRET_FORMATS = (
    *("1password", "1password-secret-key", "adafruit", "adobe", "age"),
    *("airtable", "alibaba", "anthropic", "apify", "argon2"),
    *("artifactory", "artifactory-ref", "asana", "atlassian", "atlassian-datacenter"),
    *("authress", "aws", "aws-access-key", "aws-bedrock-long", "aws-bedrock-short"),
    *("aws-session-token", "axiom", "azure-account", "azure-bus", "azure-client-secret"),
    *("azure-common", "azure-devops", "azure-function", "azure-key", "azure-refresh"),
    *("azure-registry", "azure-sas", "azure-search", "azure-storage", "bannerbear"),
    *("basic", "bcrypt", "bearer", "bitbucket-app", "braintree"),
    *("brevo", "buildkite", "cargo", "cerebras", "circleci"),
    *("clickhouse", "clojars", "cloudflare-origin", "cloudflare-token", "cody"),
    *("confluent", "contentful-management", "databricks", "deepseek-like", "defined-networking"),
    *("deno", "digitalocean", "discord-bot", "discord-hook", "dockerhub"),
    *("docusign-refresh", "doppler", "doppler-service", "dropbox", "duffel"),
    *("dynatrace", "e2b", "easypost", "elevenlabs", "endor"),
    *("facebook", "figma", "firecrawl", "fireworks", "fleetbase"),
    *("flexport", "flutterwave", "flyio", "flyio-macaroon", "frameio"),
    *("fullstory", "github", "github-fine", "github-pat", "gitlab"),
    *("gitlab-runner", "google", "google-api", "google-client-secret", "google-code"),
    *("google-oauth", "google-oauth-token", "google-refresh", "grafana", "grafana-old"),
    *("groq", "harness", "helicone", "heroku", "hubspot"),
    *("huggingface", "infisical", "infracost", "inngest", "intercom"),
    *("intra42", "jina", "jwe", "jwk", "jwt"),
    *("klaviyo", "langfuse", "langsmith", "launchdarkly", "ldap-hash"),
    *("linear", "lob", "mailchimp", "mailgun", "mapbox"),
    *("maxmind", "md5-crypt", "mysql-hash", "neon", "netlify"),
    *("newrelic", "newrelic-query", "nightfall", "notion", "npm"),
    *("nt-hash", "nuget", "nvidia", "octopus", "openai-classic"),
    *("openai-project", "openrouter", "openshift", "pagarme", "password-hash"),
    *("pbkdf2", "pem", "perplexity", "pinecone", "plaid"),
    *("planetscale", "posthog-personal", "postman", "prefect", "pulumi"),
    *("pypi", "ramp", "razorpay", "readme", "render"),
    *("replicate", "resend", "robinhood", "rootly", "rubygems"),
    *("salad", "salesforce", "scalingo", "scram", "scrypt-crypt"),
    *("securestring", "securestring-dpapi", "sendgrid", "sentry", "sentry-org"),
    *("settlemint", "sha-crypt", "shippo", "shopify", "sk"),
    *("slack", "slack-app", "slack-config", "slack-hook", "slack-trigger"),
    *("slack-workflow", "sonar", "sonarcloud", "sourcegraph", "sourcegraph-instance"),
    *("sourcegraph-local", "square", "stripe", "stripe-client-secret", "supabase"),
    *("supabase-secret", "tailscale", "tavily", "teams-hook", "telegram"),
    *("tencent", "terraform-cloud", "tines-hook", "together", "twilio"),
    *("twitter-bearer", "typeform", "ubidots", "userinfo", "vault"),
    *("vercel", "voiceflow", "voyage", "webex-bot", "webhook"),
    *("webhook-secret", "werkzeug-hash", "xai", "yandex-api", "yandex-static"),
    *("yescrypt", "zapier-hook", "zoho"),
)
"""Formats of secrets that are known, by name; `tape/redaction/finding/format_table.py` says what each is."""


def check_secret_regex(text: str) -> str:
    """Give a regular expression for secrets as written: as `check_regex`, and one that matches no empty text.

    Raises: ValueError, whose text says what would be right.
    """
    check_regex(text, _SECRET)
    if compile_regex(text).search(b""):
        raise ValueError(f"{show(text)} matches an empty text, so all would be secret; {_SECRET}")
    return text


def parse_secret_format(text: str) -> str:
    """Parse the name of a known look of secrets.

    Raises: ValueError, whose text says what would be right.
    """
    if text in SECRET_FORMATS:
        return text
    raise ValueError(f"{show(text)} is no known format; expected {_one_of(SECRET_FORMATS)}")


PERSONAL_KINDS = ("email", "phone", "iban", "card", "ssn")
"""Kinds of personal data that can be redacted."""


def parse_personal_kind(text: str) -> str:
    """Parse the name of a kind of personal data.

    Raises: ValueError, whose text says what would be right.
    """
    if text in PERSONAL_KINDS:
        return text
    raise ValueError(
        f"{show(text)} is no known kind of personal data; expected {_one_of(PERSONAL_KINDS)}"
    )


def _one_of(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]
