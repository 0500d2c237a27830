"""Keys that touch other text, hashes of passwords, JSON Web Keys, columns of passwords: against the redactor, in a prompt and in a file."""

import base64
import json
import time
from random import Random

import pytest

from playhead.tape.exchange import Request
from playhead.tape.redaction.redactor import Redactor

KEY = "ghp_" + "kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eX"
HASHES = {
    "argon2": ("$argon2id$v=19$m=65536,t=3,p=4$", "c29tZXNhbHQ3cVptMnBa$RdescudvJCsgt3ub+b4dWRWJTmaaVRXfLk9d0uS6dQw"),
    "argon2 of old": ("$argon2i$m=4096,t=3,p=1$", "c29tZXNhbHQ3cVptMnBa$RdescudvJCsgt3ub+b4dWRWJTmaaVRXfLk9d0uS6dQw"),
    "yescrypt": ("$y$j9T$", "F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7"),
    "scrypt of crypt": ("$7$", "C6..../....SodiumChl0ride$kBGj9fHznVYFQMEn/qDCfrDevf9YDtcDdKvEqHJLV8D"),
    "SCRAM": ("SCRAM-SHA-256$4096:", "8Zk3rVtQw1x5Yb7n9Lm2pQ==$k1V3x5Z7b9D1f3H5j7L9n1P3r5T7v9X1z3B5d7F9h1I=:q2W4e6R8t0Y2u4I6o8P0a2S4d6F8g0H2j4K6l8Z0x2C="),
    "Django": ("pbkdf2_sha256$600000$", "Jq1w2e3r4t5y6u7i8o9p0a$k1V3x5Z7b9D1f3H5j7L9n1P3r5T7v9X1z3B5d7F9h1I="),
    "passlib": ("$pbkdf2-sha256$29000$", "N2YMIWQsBWBMae09x1jrPQ$1t8iyB2A.WF/Z5JZv.lfCIhXXN33N23OSgQYThBYRfk"),
    "Werkzeug": ("scrypt:32768:8:1$", "k7Qm2pZ9xAb3Lrf$" + "0a9b8c7d6e5f4a3b2c1d" * 6 + "0a9b8c7d"),
    "LDAP": ("{SSHA}", "c7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eXkT5dv7==="[:-1]),
    "Windows": ("", "0B8C7D6E5F4A3B2C1D0E9F8A7B6C5D4E:8846F7EAEE8FB117AD06BDD830B7586C"),
    "MySQL": ("*", "2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"),
}  # fmt: skip
AROUND = {"Windows": "alice:1001:{}:::"}


def text(said: str) -> str:
    """Redact a file."""
    return Redactor(b"k" * 32).text(said.encode()).decode()


def prompt(said: str) -> str:
    """Redact a message of a chat."""
    body = json.dumps({"messages": [{"role": "user", "content": said}]}).encode()
    fields = ((b"content-type", b"application/json"),)
    asked = Request("POST", "https", "a.test", 443, "/v1/messages", "HTTP/1.1", fields)
    kept, _ = Redactor(b"k" * 32).request_body(asked, body)
    content: str = json.loads(kept.body)["messages"][0]["content"]
    return content


@pytest.mark.parametrize("form", ["x_{}", "my-{}", "file_{}.txt", "a__{} b", "--{}", "prod-eu-{}"])
@pytest.mark.parametrize("key", [KEY, "AKIA" + "Q3ZT7KXW2MNB5VJD", "xoxb-" + "1234098765-9876054321234-kT5dv7Qm2pZ9xAb3LrfW0yC1"])  # fmt: skip
def test_a_key_behind_a_sign_is_found(key: str, form: str) -> None:
    """Its prefix is nobody else's."""
    for redact in (text, prompt):
        assert key not in redact(form.format(key))


@pytest.mark.parametrize(
    "said",
    [
        "cache-key-" + "0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d",
        "web-sdk-" + "0a9b8c7d-6e5f-4a3b-2c1d-0e9f8a7b6c5d",
        "task-sk-learn-pipeline-version-2",
        "my_hf_model_name_of_some_length_or_other",
        "public-api-" + "0a9b8c7d-6e5f-4a3b-2c1d-0e9f8a7b6c5d",
    ],
)
def test_a_word_behind_a_sign_is_no_prefix(said: str) -> None:
    """Names of caches and programs."""
    assert text(said) == prompt(said) == said


@pytest.mark.parametrize("name", HASHES)
def test_the_hash_of_a_password_is_replaced_and_what_it_costs_stays(name: str) -> None:
    """In shadow files, dumps of databases and directories."""
    cost, secret = HASHES[name]
    said = AROUND.get(name, "alice:{}:19000:0:99999:7:::").format(cost + secret)
    for redact in (text, prompt):
        kept = redact(said)
        assert cost in kept
        assert len(kept) == len(said)
        assert not [part for part in secret.replace(":", "$").split("$") if len(part) > 15 and part in kept]  # fmt: skip


MEMBERS = {name: base64.urlsafe_b64encode(Random(name).randbytes(32)).decode().rstrip("=") for name in ("n", "x", "d", "k", "p", "q", "dp", "dq", "qi")}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "public", "secret"),
    [
        ("RSA", ("n",), ("d", "p", "q", "dp", "dq", "qi")),
        ("EC", ("x",), ("d",)),
        ("OKP", ("x",), ("d",)),
        ("oct", (), ("k",)),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_private_members_of_a_json_web_key_are_replaced(
    kind: str, public: tuple[str, ...], secret: tuple[str, ...], first: bool
) -> None:
    """Public ones stay, in whatever order; RFC 7518 section 6."""
    members = {name: MEMBERS[name] for name in (*public, *secret)}
    key = {"kty": kind, **members} if first else {**members, "kid": "a", "kty": kind}
    for said in (json.dumps(key), json.dumps({"keys": [key, {**key, "kid": "b"}]}, indent=1)):
        for redact in (text, prompt):
            kept = redact(said)
            assert not [name for name in secret if MEMBERS[name] in kept]
            assert all(MEMBERS[name] in kept for name in public)


def test_other_objects_with_such_members_stay() -> None:
    """`d` and `k` are names of anything."""
    said = json.dumps({"d": MEMBERS["d"], "k": MEMBERS["k"], "kind": "point"})
    assert text(said) == said
    public = json.dumps({"kty": "EC", "x": MEMBERS["x"], "y": MEMBERS["n"], "crv": "P-256"})
    assert text(public) == prompt(public) == public


PASSWORDS = "v7Qm2pZ9xAb3LrfW", "Tr0ub4dor-3xK"


@pytest.mark.parametrize(
    "said",
    [
        "user,password,role\nalice,{},admin\nbob,{},user\n",
        "password,user\r\n{},alice\r\n{},bob\r\n",
        '"user","api_key"\n"alice","{}"\n"bob","{}"\n',
        "user;secret\nalice;{}\nbob;{}",
        "user\ttoken\tname\nalice\t{}\tA\nbob\t{}\tB\n",
        "| user | password |\n|---|---|\n| alice | {} |\n| bob | {} |\n",
        "|password|user|\n|:--|--:|\n|{}|alice|\n|{}|bob|",
    ],
)
def test_a_column_that_is_named_like_a_secret_is_replaced(said: str) -> None:
    """In files of rows and in tables of Markdown; other columns stay, and in prompts all do."""
    filled = said.format(*PASSWORDS)
    kept = text(filled)
    assert not [one for one in PASSWORDS if one in kept]
    assert "alice" in kept
    assert len(kept) == len(filled)
    assert prompt(filled) == filled


@pytest.mark.parametrize(
    "said",
    [
        "user,password,role\nalice,none,admin\nbob,changeme,user\n",
        "We ask for user, password, and role.\nThe rest is text, kT5dv7Qm2pZ9xAb3, and more.\n",
        "id,next_page_token\n1,v7Qm2pZ9xAb3LrfW\n",
        "password,\n",
    ],
)
def test_words_in_such_a_column_stay(said: str) -> None:
    """So do rows of another number of columns, and sentences."""
    assert text(said) == said


def _body(**members: object) -> str:
    return json.dumps(members)


@pytest.mark.parametrize(
    "said",
    [
        _body(query=f'mutation {{ login(user: "bob", password: "{PASSWORDS[0]}") {{ id }} }}'),
        _body(query=f'mutation Login($a: Int) {{\n  login(token: "{PASSWORDS[0]}")\n}}', variables={}),
        _body(operationName="A", query=f'query A {{ me(apiKey: "{PASSWORDS[0]}") {{ id }} }}'),
        _body(query=f'{{ me(secret: "{PASSWORDS[0]}") {{ id }} }}'),
        _body(recovery_codes=["k3f9a-x7q2m", "w8b4c-d5h1j"]),
        _body(backupCodes=["K3F9A-X7Q2M"]),
    ],
)  # fmt: skip
def test_arguments_of_graphql_and_codes_are_replaced(said: str) -> None:
    """A document of GraphQL is no prompt."""
    kept = text(said)
    assert not [
        one for one in (PASSWORDS[0], "k3f9a-x7q2m", "w8b4c-d5h1j", "K3F9A-X7Q2M") if one in kept
    ]
    assert json.loads(kept).keys() == json.loads(said).keys()


@pytest.mark.parametrize(
    "said",
    [
        _body(query=f'say what password: "{PASSWORDS[0]}" means'),
        _body(query=f'query the table; password: "{PASSWORDS[0]}"'),
        _body(content=f'mutation {{ login(password: "{PASSWORDS[0]}") {{ id }} }}'),
        _body(error_codes=["k3f9a-x7q2m"], recovery_codes=["used", "none-left"]),
    ],
)
def test_other_queries_and_codes_stay(said: str) -> None:
    """A search in words, a document in a prompt."""
    assert text(said) == said


@pytest.mark.parametrize(
    "said",
    [
        "a,password\n" * 90_000,
        "password," * 60 + "x\n",
        ("password," * 60 + "x\n") * 1_800,
        '{"kty":"RSA"' * 80_000,
        '{' + '"kty":"RSA",' * 80_000,
        ("user,password\n" + f"alice,{PASSWORDS[0]}\n" * 50 + "\n") * 800,
    ],
    ids=len,
)  # fmt: skip
def test_a_text_with_many_tables_is_bounded(said: str) -> None:
    """In looks, and so in time: what is not searched is not kept."""
    began = time.process_time()
    kept = Redactor(b"k" * 32).text(said.encode())
    assert len(kept) == len(said)
    assert PASSWORDS[0].encode() not in kept
    assert time.process_time() - began < 3  # 0.02 to 0.2 s on an idle machine
