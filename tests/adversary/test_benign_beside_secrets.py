"""What names something else, though its name ends as that of a secret does: it comes back as it was, and its neighbours do not."""

import json

import pytest

from playhead.tape.redaction.redactor import Redactor

VALUE = "v7Qm2pZ9xAb3LrfW0yC1kT5dQe8uH4nJ"
HEX = "c38b71e78bd38bfa5d4f848940c5812d"


def _text(text: str) -> str:
    return Redactor(b"k" * 32).text(text.encode()).decode()


@pytest.mark.parametrize(
    "text",
    [
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-W3VK4p\n",
        "see arn:aws:secretsmanager:eu-west-1:123456789012:secret:Prod9/Db7-wRZV1U for it",
        *(json.dumps({name: VALUE}) for name in ("pagination_token", "paginationToken", "deltaToken", "delta_token")),
        *(json.dumps({name: HEX}) for name in ("file_key", "fileKey", "etag_key", "dedupe_key", "verify_key", "host_key", "recaptcha_site_key")),
        *(json.dumps({"password": state}) for state in ("expired_90_days", "changed-2026-11-27", "not_set", "rotated_on_2026")),
        *(json.dumps({"secret": state}) for state in ("rotated-2026-11-27", "TheButlerDidItIn1923", "managed-by-vault-2")),
        *(json.dumps({"db_password": where}) for where in ("ssm:/prod/db/Password2", "vault:/kv/Db7/pass", "secretref:/app/Key9")),
        "curl -U\nps -u bob:Group1\n",
        json.dumps({"content": "curl https://h\nps -u bob:Group1\n"}),
    ],
)  # fmt: skip
def test_it_stays(text: str) -> None:
    """The name of a resource, a page, a file, what became of a secret, where it is."""
    assert _text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *(json.dumps({name: VALUE}) for name in ("page_access_token", "deltaApiToken", "file_access_key", "host_api_key", "verify_secret", "site_secret")),
        *(json.dumps({"password": VALUE}), json.dumps({"password": "rotated-Kq81zPd0tY3x-" + VALUE})),
        f"secret: {VALUE}\n",
        f"curl -X POST \\\n  -u bob:{VALUE} https://h\n",
        f"curl -d '{{\n}}' -u bob:{VALUE} https://h\n",
        json.dumps({"content": f"curl -X POST \\\n  -u bob:{VALUE} https://h\n"}),
    ],
)  # fmt: skip
def test_its_neighbour_is_replaced(text: str) -> None:
    """Which is a secret by the same words."""
    assert VALUE not in _text(text)


def test_words_in_base64_are_not_looked_for() -> None:
    """A password is, where it is beside its code."""
    text = _text("password: cHJvZHVjdGlvbi1kYXRhYmFzZQ== # of the production-database\n")
    assert text.endswith("of the production-database\n")
    assert "Kq81zPd0" not in _text("password: S3E4MXpQZDAtdFkzeA== # Kq81zPd0-tY3x\n")
