"""Credentials in their own places in the text of a tool, written in further ways."""

import json

import pytest

from playhead.tape.redaction.redactor import Redactor

SECRET = "v7Qm2pZ9xAb3LrfW0yC1kT5d"


@pytest.mark.parametrize(
    "text",
    [
        "git clone https://{}@github.com/a/b\n",
        "git clone https://{}:x-oauth-basic@github.com/a/b\n",
        "curl https://{}:@api.stripe.com/v1/charges\n",
        "db.example.com:5432:shop:bob:{}\n",
        "*:*:*:*:{}\n",
        "a\ndb.example.com:*:*:bob:{}\n",
        "     3\tDB_PASSWORD={}\n",
        "     2→FOO=1\n     3→DB_PASSWORD={}\n     4→BAR=2\n",
        '$ PGPASSWORD="{}" psql -h x\n',
        "bob@box:~$ PGPASSWORD={} psql\n",
        "\x1b[32mDB_PASSWORD\x1b[0m={}\n",
        "\x1b[1;32mexport \x1b[0mDB_PASSWORD=\x1b[33m{}\x1b[0m\n",
        "machine api.example.com login bob password {}\n",
        "machine api\n  login bob\n  password {}\n",
        "default login bob password {}\n",
        "GET /a HTTP/1.1\nHost: h\nCookie: sid={}; theme=dark\n\n",
        "curl -b session={} https://h\n",
        "\ufeffDB_PASSWORD={}\n",
        "\tDB_PASSWORD={}\n",
        "export\tDB_PASSWORD={}\n",
        "\u00a0DB_PASSWORD={}\n",
        "DB_PASSWORD\u00a0=\u00a0{}\n",
        "DB_PASSWORD\t=\t{}\n",
        "DB_PASSWORD ?= {}\n",
        "DB_PASSWORD?={}\n",
        "export DB_PASSWORD := {}\n",
        "DB_PASSWORD ::= {}\n",
        "x --password {} --port 1",
        "x --db-password {}",
        "x --token '{}'",
    ],
)
@pytest.mark.parametrize("wrap", ["text", "tool"])
@pytest.mark.parametrize("secret", [SECRET, "Summer2026x"])
def test_a_credential_in_its_place_is_replaced(text: str, wrap: str, secret: str) -> None:
    """As it is, and in the string of a tool's result."""
    if secret != SECRET and "DB_PASSWORD" not in text:
        pytest.skip("a password that somebody made up is known by its place alone")
    said = text.format(secret)
    if wrap == "tool":
        if said.startswith("x --"):
            pytest.skip("an option of a command that is not listed is a word of a prompt")
        said = json.dumps({"messages": [{"role": "tool", "content": said}]})
    kept = Redactor(b"k" * 32).text(said.encode()).decode()
    assert secret not in kept
    assert len(kept) == len(said)
    before, _, after = said.partition(secret)
    assert kept.startswith(before)
    assert kept.endswith(after)


@pytest.mark.parametrize(
    "text",
    [
        '{"headers":{"Cookie":"sid=SECRET"}}',
        '["Cookie","session=SECRET"]',
        '["Authorization","Token SECRET"]',
        '{"name":"Cookie","value":"a=b; sid=SECRET"}',
        '{"name": "set-cookie", "value": "sid=SECRET; Path=/"}',
        '["curl","-b","session=SECRET"]',
        '{"value":"SECRET","name":"Authorization"}',
        '{"value": "Bearer SECRET", "name": "authorization", "enabled": true}',
        '{"value": "SECRET", "name": "X-Api-Key"}',
        '{"value": "a=b; sid=SECRET", "name": "Cookie"}',
        '{"value": "sid=SECRET; Path=/", "type": "text", "name": "Set-Cookie"}',
        '[{"value": "a", "name": "Accept"}, {\n  "value": "SECRET",\n  "name": "Authorization"\n}]',
        '{"Value": "SECRET", "Key": "API_TOKEN"}',
        '{"ParameterValue": "SECRET", "PropagateAtLaunch": true, "ParameterKey": "DbPassword"}',
    ],
)
def test_a_header_field_in_json_is_replaced_at_any_depth(text: str) -> None:
    """As a document, in a string of one, and in a string in a string."""
    said = text.replace("SECRET", SECRET)
    for _ in range(3):
        assert SECRET not in Redactor(b"k" * 32).text(said.encode()).decode()
        said = json.dumps({"messages": [{"role": "tool", "content": said}]})


@pytest.mark.parametrize(
    "cookies",
    ["-b {}", '-b "{}"', "--cookie '{}'", "--cookie={}", "-H 'Accept: a' -b {}"],
)
def test_each_cookie_of_curl_is_replaced(cookies: str) -> None:
    """Not the first one alone."""
    said = f"curl {cookies.format(f'theme=dark;sid={SECRET};rt={SECRET[::-1]}')} https://h/a?b=c"
    kept = Redactor(b"k" * 32).text(said.encode()).decode()
    assert SECRET not in kept
    assert SECRET[::-1] not in kept
    assert kept.endswith(said[-16:])


@pytest.mark.parametrize(
    "text",
    [
        f"curl https://h/foo-bar={SECRET}",
        "machine translation models login via password manager1",
        f"curl -b {'{'}jar{'}'} https://h/?state={SECRET}",
        f'{{"value": "{SECRET}", "name": "Accept"}}',
        f'{{"value": "{SECRET}"}}, {{"name": "Authorization"}}',
        "the machine learning login via password manager1 of a team",
        "https://some-user-name:x-oauth-basic@github.com/a",
        "10:*:any:words:afterwards2 are none",
        "caf\u00e9 \\u2192DB_PASSWORD is a name",
        "\x1b[32mPASS\x1b[0m: test_password_reset_link_v2",
    ],
)
def test_words_stay(text: str) -> None:
    """In a prompt."""
    said = json.dumps({"content": text}).encode()
    assert Redactor(b"k" * 32).text(said) == said


def test_a_word_of_a_command_is_known_by_the_one_before() -> None:
    """Each word stays one, with its length."""
    command = [
        *("bash", "-c", "true ü", "x", f"--password={SECRET}", "--password", SECRET[::-1]),
        *(
            "--token",
            SECRET * 2,
            "--db-password",
            "a" + SECRET,
            "--port",
            "8080",
            "--max-tokens",
            "12",
        ),
    ]
    told = Redactor(b"k" * 32).redact_command(command)
    assert [len(word) for word in told] == [len(word) for word in command]
    changed = [at for at, word in enumerate(told) if word != command[at]]
    assert changed == [4, 6, 8, 10]
    assert told[4].startswith("--password=")
    line = Redactor(b"k" * 32).redact_command(["mysql", "-u", "joe", f"-p{SECRET}", "shop"])
    assert line[:3] == ["mysql", "-u", "joe"]
    assert SECRET not in line[3]
    assert line[4] == "shop"
