"""A header line in a text is what the field itself is: in a log, a prompt, a tool's result and its arguments, the output of `curl -v`, a diff."""

import base64
import json
from collections.abc import Callable
from random import Random
from string import ascii_letters, digits

import pytest

from playhead.tape.redaction.credential_fields import AUTHORIZATION, COOKIE, HEADERS
from playhead.tape.redaction.redactor import Redactor

_RNG = Random(27)
HEX = "0123456789abcdef"


def _alnum(size: int) -> str:
    """Draw letters and digits."""
    return "q7" + "".join(_RNG.choices(ascii_letters + digits, k=size - 2))


def _hex(size: int) -> str:
    return "c7" + "".join(_RNG.choices(HEX, k=size - 2))


def _base64(size: int) -> str:
    return base64.b64encode(_RNG.randbytes(size)).decode()


def _prompt(said: str) -> str:
    return json.dumps({"messages": [{"role": "user", "content": said}]})


WAYS: dict[str, Callable[[str], str]] = {
    "a log": lambda line: f"first\n{line}\nlast\n",
    "an answer": lambda line: f"HTTP/1.1 200 OK\r\n{line}\r\nServer: x\r\n\r\n",
    "curl -v": lambda line: f"> GET / HTTP/1.1\n> {line}\n< HTTP/1.1 200 OK",
    "a prompt": lambda line: _prompt(f"$ x\n{line}\n$ ls"),
    "an answer in a prompt": lambda line: _prompt(f"HTTP/1.1 302 Found\r\n{line}\r\n\r\n"),
    "curl -v in a prompt": lambda line: _prompt(f"* x\n> {line}\n< y"),
    "arguments of a tool": lambda line: json.dumps({"a": json.dumps({"command": f"a\n{line}\nb"})}),
    "an indented line": lambda line: _prompt(f"first\n    {line}\nlast"),
    "a tab": lambda line: _prompt(f"first\n\t{line}\nlast"),
    "a diff": lambda line: _prompt(f"first\n-{line}\n+x"),
    "a diff with a blank": lambda line: f"first\n- {line}\n+x",
    "a document in a prompt": lambda line: _prompt(json.dumps(f"a\n{line}\nb")),
    "the end of a text": lambda line: f"first\n{line}",
}


def _field(name: str, kind: str) -> tuple[str, list[str]]:
    """Write a line of a field of the table, and its secrets."""
    value = _alnum(40)
    shown = "-".join(word.capitalize() for word in name.split("-"))
    if kind == COOKIE:
        return f"{shown}: sid={value}; theme=dark", [value]
    if kind == AUTHORIZATION:
        return f"{shown}: Bearer {value}", [value]
    return f"{shown}: {value}", [value]


def _lines() -> dict[str, tuple[str, list[str]]]:
    found = {name: _field(name, kind) for name, kind in HEADERS.items()}

    def add(name: str, form: str, *values: str) -> None:
        found[name] = form.format(*values), list(values)

    for name in ("", "Proxy-"):
        add(
            f"{name}Digest",
            name
            + 'Authorization: Digest username="bob", realm="r", nonce="d1a2b3c4d5e6f708", uri="/x", response="{}"',
            _hex(32),
        )
    add("Digest, first", 'authorization: digest response="{}", username=bob', _hex(32))
    add(
        "Digest, without quotes",
        "Authorization: Digest username=bob, realm=r, uri=/x, response={}",
        _hex(32),
    )
    add(
        "WSSE",
        'X-WSSE: UsernameToken Username="bob", PasswordDigest="{}", Nonce="{}", Created="2026-11-27T00:00:00Z"',
        _base64(20),
        _base64(16),
    )
    add(
        "WSSE, lower case",
        'x-wsse: UsernameToken Username="bob", PasswordDigest="{}", Nonce="d36e316282959a9ed4c89851497a717f", Created="2026-11-27T00:00:00Z"',
        _base64(20),
    )
    add(
        "WSSE as authorization",
        'Authorization: WSSE profile="UsernameToken", PasswordDigest="{}"',
        _base64(20),
    )
    add(
        "OAuth 1",
        'Authorization: OAuth oauth_consumer_key="a1", oauth_token="{}", oauth_signature="{}", oauth_version="1.0"',
        _alnum(32),
        _base64(20),
    )
    add(
        "Hawk",
        'Authorization: Hawk id="dh37fgj492je", ts="1353832234", nonce="j4h3g2", mac="{}"',
        _base64(32),
    )
    add(
        "Signature",
        'Authorization: Signature keyId="k1",algorithm="rsa-sha256",headers="date",signature="{}"',
        _base64(64),
    )
    add(
        "Signature, with blanks",
        'Authorization: Signature keyId = "k1", signature = "{}"',
        _base64(64),
    )
    add(
        "AWS4",
        "Authorization: AWS4-HMAC-SHA256 Credential=x/20260102/eu-west-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature={}",
        _hex(64),
    )
    add("AWS", "Authorization: AWS 0PN5J17HBGZHT7JJ3X82:{}", _base64(20))
    add("SharedKey", "Authorization: SharedKey myaccount:{}", _base64(32))
    add(
        "Sentry",
        "X-Sentry-Auth: Sentry sentry_version=7, sentry_client=a/1, sentry_key={}, sentry_secret={}",
        _hex(32),
        _alnum(32),
    )
    add("Stripe", "Stripe-Signature: t=1767225600,v1={}", _hex(64))
    add("Stripe, two", "Stripe-Signature: t=1767225600,v1={},v0={}", _hex(64), _hex(64))
    add("GitHub", "X-Hub-Signature-256: sha256={}", _hex(64))
    add("Slack", "X-Slack-Signature: v0={}", _hex(64))
    for name, form in {
        "first": "?code={}&state=x",
        "last": "?state=x&code={}",
        "between": "?state=x&code={}&iss=y",
        "in a fragment": "#code={}&state=x",
    }.items():
        add(f"code, {name}", "Location: https://app.test/cb" + form, _alnum(20))
    add("code of a target", "location: /cb?code={}&state=x", _alnum(20))
    add("code with a prefix", "Location: https://app.test/cb?code=4%2F0A{}&state=x", _alnum(60))
    add(
        "code, content-location",
        "Content-Location: https://app.test/cb?code={}&state=x",
        _alnum(20),
    )
    add(
        "token in a fragment",
        "Location: https://app.test/cb#access_token={}&token_type=bearer",
        _alnum(24),
    )
    add("netrc", "machine git.example.org login deploy password {}", _alnum(16))
    add("netrc in lines", "machine git.example.org\n  login deploy\n  password {}", _alnum(16))
    add("netrc, default", "default login deploy password {}", _alnum(16))
    add("subprotocol", "Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.{}", _alnum(48))
    return found  # fmt: skip


LINES = _lines()


@pytest.mark.parametrize("way", WAYS)
def test_no_header_line_keeps_its_secret(way: str) -> None:
    """All fields of the table, and the parameters of each scheme, `.netrc`, and codes of OAuth."""
    left = []
    for name, (line, values) in LINES.items():
        said = WAYS[way](line)
        kept = Redactor(b"k" * 32).text(said.encode()).decode()
        assert len(kept) == len(said)
        if any(json.dumps(value)[1:-1] in kept or value in kept for value in values):
            left.append(name)
    assert left == []


@pytest.mark.parametrize("way", WAYS)
def test_the_name_the_scheme_and_the_open_parameters_stay(way: str) -> None:
    """As they do in the field."""
    shown = [
        ("WSSE", ["X-WSSE: UsernameToken Username=", "Created="]),
        ("Digest", ["Authorization: Digest username=", "realm=", "uri=", "response="]),
        ("AWS4", ["Credential=x/20260102/eu-west-1/s3/aws4_request", "SignedHeaders=host;x-amz-date"]),
        ("code, first", ["Location: https://app.test/cb?code=", "&state=x"]),
        ("GitHub", ["X-Hub-Signature-256: sha256="]),
        ("Stripe", ["t=1767225600,v1="]),
        ("netrc", ["machine git.example.org login deploy password "]),
    ]  # fmt: skip
    for name, parts in shown:
        kept = Redactor(b"k" * 32).text(WAYS[way](LINES[name][0]).encode()).decode()
        assert [part for part in parts if part not in kept] == [], name


@pytest.mark.parametrize(
    "line",
    [
        "Location: https://app.test/cb?code=authorization_code_of_grant&state=x",
        "Location: https://app.test/cb?code=SplxlOBeZQQ&state=xyz",
        f"Location: https://app.test/p?code={_hex(32)}",
        f"Location: /files/{_hex(40)}/a.txt?state=b",
        "Location: Berlin, Germany",
        f"relocation: https://app.test/cb?code={_alnum(20)}&state=x",
        "X-WSSE: UsernameToken Username=..., PasswordDigest=..., Nonce=...",
        'X-WSSE: UsernameToken Username="bob", PasswordDigest="base64(sha1(nonce+created))"',
        'Authorization: Digest username="Mufasa", realm="testrealm@host.com", response="<response>"',
        'WWW-Authenticate: Digest realm="testrealm@host.com", qop="auth,auth-int"',
        "Stripe-Signature: t=timestamp,v1=signature",
        "X-Hub-Signature-256: sha256=HEX_DIGEST",
        f"Digest: SHA-256={_base64(32)}",
        f"ETag: {_hex(32)}",
        f"X-Request-Id: {_hex(32)}",
        "the state machine logs in: login bob then password reset",
        "the machine shows a login form and a password field",
        "dpop: a proof of possession",
        "x-honeycomb-team: the-team-of-observability",
        "Sec-WebSocket-Protocol: graphql-transport-ws, v1.kernel.websocket.jupyter.org",
    ],
)
def test_lines_without_a_secret_stay(line: str) -> None:
    """Words, examples to be filled in, places, ids and digests of what everybody may read."""
    for way, write in WAYS.items():
        said = write(line)
        assert Redactor(b"k" * 32).text(said.encode()).decode() == said, way
