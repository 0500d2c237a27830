"""Placeholders of values in a coding or a spelling: of each one, whoever undoes it finds the same."""

import base64
import json
import uuid

import pytest

from playhead.tape.redaction.redactor import Redactor

_TOKEN = "kX9vQ2mL7pR4tZ8wB5nC1dF6"
TEXTS = [
    "hunter2-" + _TOKEN,
    _TOKEN + "\n",
    "a line of words and " + _TOKEN,
    "Pässwort-" + _TOKEN,
    f"user={_TOKEN}\nother=9Hq27xLm\n",
    json.dumps({"access_token": _TOKEN, "expires": 1999999999}),
    f"postgres://svc:{_TOKEN}@db.example/app",
    f"-----BEGIN PRIVATE KEY-----\n{_TOKEN * 4}\n-----END PRIVATE KEY-----\n",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("padded", [True, False])
def test_base64_of_a_text_means_a_text(text: str, padded: bool) -> None:
    """As a Secret of Kubernetes has it: a client decodes it, and finds JSON, lines, a URL or a key in it."""
    for code in (base64.b64encode, base64.urlsafe_b64encode):
        value = code(text.encode()).decode()
        value = value if padded else value.rstrip("=")
        said = json.loads(Redactor(b"key").redact_text(json.dumps({"data": {"password": value}})))
        made = said["data"]["password"]
        assert made != value
        assert len(made) == len(value)
        plain = base64.urlsafe_b64decode(
            made.replace("+", "-").replace("/", "_") + "=" * (-len(made) % 4)
        ).decode()
        assert _TOKEN not in plain
        if "BEGIN" in text:
            assert plain.startswith("-----BEGIN PRIVATE KEY-----\n")
            assert plain.endswith("\n-----END PRIVATE KEY-----\n")
        if text.startswith("{"):
            assert json.loads(plain).keys() == json.loads(text).keys()
            assert json.loads(plain)["expires"] == 1999999999
        if "://" in text:
            assert plain.startswith("postgres://svc:")
            assert plain.endswith("@db.example/app")


def test_what_base64_means_has_the_placeholder_of_its_own() -> None:
    """An agent that decodes it and sends it anywhere is the recorded one."""
    word = "hunter2-" + _TOKEN
    value = base64.b64encode(word.encode())
    recorded, played = Redactor(b"key"), Redactor(b"key")
    said = recorded.redact_text(f'{{"password": "{value.decode()}"}}')
    made = base64.b64decode(json.loads(said)["password"]).decode()
    assert made == recorded.stands_for(word.encode()).decode()
    assert recorded.redact_text(f"pw is {word}") == f"pw is {made}"
    (given,) = played._keep_all([json.loads(said)["password"].encode()])
    assert played.stands_for(given) == given
    assert played.stands_for(made.encode()) == made.encode()
    assert played.redact_text(f"pw is {made}") == f"pw is {made}"


def test_the_spellings_of_a_uuid_are_one() -> None:
    """Small or capital letters, with hyphens or without: each is found, and has the same placeholder in its spelling."""
    given = uuid.UUID("9c10f1df-ab23-4386-bb90-1297ba89271b")
    for name in (str(given), given.hex, str(given).upper(), given.hex.upper()):
        redactor = Redactor(b"key")
        made = uuid.UUID(json.loads(redactor.redact_text(json.dumps({"token": name})))["token"])
        assert made != given
        assert made.version == given.version
        for text in (str(given), given.hex, str(given).upper(), given.hex.upper(), given.urn):
            said = redactor.redact_text(f"id {text}")
            assert uuid.UUID(said.removeprefix("id ")) == made
            assert (said.isupper(), len(said)) == (f"id {text}".isupper(), len(text) + 3)
        played = Redactor(b"key")
        played._keep_all([str(made).encode()])
        for text in (str(made), made.hex, str(made).upper()):
            assert played.redact_text(json.dumps({"token": text})) == json.dumps({"token": text})


def test_what_was_signed_for_whom_stays() -> None:
    """The day, the region and the service of a signed URL, and the version of a PASETO."""
    scope = "/20261128/us-east-1/s3/aws4_request"
    for written in (scope, scope.replace("/", "%2F")):
        said = Redactor(b"key").redact_text(
            f"https://b.example/k?X-Amz-Credential=AKIAQ7ZP2LMX9KTR4W3D{written}&X-Amz-Expires=60"
        )
        assert said.endswith(written + "&X-Amz-Expires=60")
        assert "AKIAQ7ZP2LMX9KTR4W3D" not in said
    token = "v4.local." + _TOKEN * 4
    said = json.loads(Redactor(b"key").redact_text(json.dumps({"token": token})))["token"]
    assert said.startswith("v4.local.")
    assert _TOKEN not in said
