"""Secrets in base64: whatever announces one is found at each of three offsets, in each spelling."""

import base64
import json
from collections.abc import Callable

import pytest

from playhead.tape.redaction.redactor import Redactor

SECRET = "M8PkzcqzRzyCaTRpIieG"
TEXTS = [
    "postgres://admin:{}@db.corp:5432/x",
    "redis://:{}@cache:6379/0",
    "amqps://u:{}@mq/vh",
    "mongodb+srv://u:{}@c0.ab1.mongodb.net/t",
    "Server=tcp:h,1433;Database=d;User ID=u;Password={};Encrypt=True;",
    "Server=h;Database=d;UID=u;Pwd={};",
    "//npm.corp/:_authToken={}",
    *(f"{name}={{}}" for name in ("passwd", "Passwd", "PASSWD", "DB_PWD", "pwd", "redis_pass")),
    *(f"{name}: {{}}" for name in ("passphrase", "Passphrase", "PASSPHRASE", "REDIS_PASS")),
    *(f"{name}={{}}" for name in ("ApiKey", "apiKey", "API_KEY", "clientSecret", "ClientSecret")),
    *(f'{{{{"{name}": "{{}}"}}}}' for name in ("credentials", "Token", "accessKey", "AccountKey")),
    *(f"https://maps.example.com/a?{name}={{}}" for name in ("key", "sig", "hmac", "signature")),
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("before", ["", "#", "##"], ids=range(3))
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_secret_in_base64_is_found_at_each_offset(
    text: str, before: str, encode: Callable[[bytes], bytes]
) -> None:
    """As in a Secret of Kubernetes, which an agent shows its model."""
    coded = encode(f"{before}\n{text.format(SECRET)}".encode()).decode()
    said = Redactor(b"key").redact_text(json.dumps({"content": f"data:\n  URL: {coded}\n"}))
    shown = json.loads(said)["content"].split()[-1]
    plain = base64.b64decode(shown.translate(str.maketrans("-_", "+/"))).decode()
    assert len(plain) == len(before) + 1 + len(text.format(SECRET))
    assert SECRET not in plain


def test_base64_of_prose_and_urls_stays() -> None:
    """Words alone, and URLs without credentials, are looked at, and no more."""
    prose = "Passwords: see https://example.com/docs?page=2. Auth: none; Key: value; pwd, token."
    for before in ("", "#", "##"):
        said = json.dumps({"content": base64.b64encode((before + prose).encode()).decode()})
        assert Redactor(b"key").redact_text(said) == said
