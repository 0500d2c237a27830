"""Names of secrets in any spelling: what is known with signs between its words is known with capitals, and header fields without signs."""

import json

import pytest

from playhead.tape.exchange import RawRequest
from playhead.tape.redaction.finding.secrets_by_name import read_name
from playhead.tape.redaction.redactor import Redactor

VALUE = "v7Qm2pZ9xAb3LrfW0yC1kT5dQe8uH4nJ"
KEYS = [
    "subscription",
    "hmac",
    "routing",
    "deploy",
    "ssh",
    "license",
    "activation",
    "webhook",
    "integration",
    "ingest",
    "write",
    "project",
    "account",
    "stripe",
    "client",
]


def _camel(name: str) -> str:
    first, *words = name.split("_")
    return first + "".join(word.capitalize() for word in words)


@pytest.mark.parametrize("word", KEYS)
@pytest.mark.parametrize("form", ['{{"{}": "{}"}}', "{}: {}", "x=1\n{}={}\n", "{} = '{}'"])
def test_a_key_is_known_in_both_spellings(word: str, form: str) -> None:
    """With a sign, and with a capital."""
    for name in (f"{word}_key", f"{word}Key", f"{word}-key", f"{word.capitalize()}Key"):
        text = form.format(name, VALUE)
        assert VALUE not in Redactor(b"k" * 32).text(text.encode()).decode(), name


@pytest.mark.parametrize(
    "name",
    [
        *("SecretString", "SecretBinary", "secretValue", "passwordValue", "token_value", "tokenString", "secretBase64", "PASSWORD_BASE64"),
        *("authorization_code", "authorizationCode", "AuthorizationCode", "auth_code"),
    ],
)  # fmt: skip
def test_what_a_secret_is_written_as_changes_no_name(name: str) -> None:
    """A text, bytes, base64; and the code of a grant."""
    kept = Redactor(b"k" * 32).text(json.dumps({"Name": "db", name: VALUE}).encode()).decode()
    assert VALUE not in kept


@pytest.mark.parametrize(
    "name",
    [
        *("monkey", "turkey", "hotkey", "keyboard", "primaryKey", "sortKey", "cacheKey", "objectKey", "partitionKey", "idempotencyKey"),
        *("conditionKeys", "requiredKeys", "publicKey", "storageKey", "uploadKey"),
    ],
)  # fmt: skip
def test_a_name_of_something_else_stays(name: str) -> None:
    """Words that end so, keys of tables, names of members."""
    text = json.dumps({name: "c38b71e78bd38bfa5d4f848940c5812d"}).encode()
    assert Redactor(b"k" * 32).text(text) == text


def test_a_list_of_names_stays() -> None:
    """As of the keys of a condition."""
    text = b'{"conditionKeys": ["ec2:AvailabilityZoneId", "ec2:Ipv4IpamPoolId", "ec2:KmsKeyId"]}'
    assert Redactor(b"k" * 32).text(text) == text


def test_a_client_key_is_read_by_its_value() -> None:
    """A short one is what a page may know."""
    assert read_name(b"clientKey") is not None
    text = b'{"clientKey": "web-2026-b1"}'
    assert Redactor(b"k" * 32).text(text) == text


@pytest.mark.parametrize(
    "name", ["access-token", "Refresh-Token", "Id-Token", "Auth-Token", "X-AccessToken", "ApiKey", "refresh_token"]
)  # fmt: skip
def test_a_field_of_an_answer_is_known_without_x_and_signs(name: str) -> None:
    """As the table has it with them."""
    kept, _ = Redactor(b"k" * 32).response_headers(((name.encode(), VALUE.encode()),))
    assert VALUE.encode() not in kept[0][1]


@pytest.mark.parametrize(
    "name", ["Lock-Token", "x-next-token", "X-Ms-Session-Token", "etag", "x-page-token"]
)
def test_another_field_of_an_answer_stays(name: str) -> None:
    """A lock, the next page."""
    headers = ((name.encode(), VALUE.encode()),)
    assert Redactor(b"k" * 32).response_headers(headers)[0] == headers


@pytest.mark.parametrize(
    "name", ["X-JWT", "X-Original-Authorization", "X-SessionID", "X-ApiToken", "X-MyToken", "X-Api-Token"]
)  # fmt: skip
@pytest.mark.parametrize("value", [VALUE, "Bearer " + VALUE])
def test_a_field_of_a_request_is_known(name: str, value: str) -> None:
    """By its last word, with signs or without."""
    if value != VALUE and not name.endswith("ation"):
        value = VALUE
    headers = ((name.encode(), value.encode()),)
    asked = RawRequest("GET", "http", "h", 80, "/", "HTTP/1.1", headers)
    kept, _ = Redactor(b"k" * 32).head(asked)
    assert VALUE.encode() not in kept.headers[0][1]
