"""Passwords that people make up, in places that exist for passwords: known by the place alone, whatever they look like."""

import json

import pytest

from playhead.tape.redaction.redactor import Redactor

WEAK = "Dragon4782"
RAW = "kX9m{}P2vL7qT4"


def _text(text: str) -> str:
    return Redactor(b"k" * 32).text(text.encode()).decode()


@pytest.mark.parametrize(
    "text",
    [
        "jdbc:sqlserver://db;databaseName=x;user=sa;password={};encrypt=true",
        "jdbc:postgresql://db/shop?user=app&password={}",
        "Server=db;Database=x;User Id=sa;Password={};",
        "Data Source=db;Initial Catalog=x;Uid=root;Pwd={};",
        "host=db port=5432 user=app password={} sslmode=require",
        'psql "host=db user=app password={}"',
        "*:*:*:postgres:{}",
        "localhost:*:shop:app:{}",
        "db:5432:shop:app:Zq8w\\:{}",
        "0 3 * * * PGPASSWORD={} pg_dump shop",
        "SSHPASS={} sshpass -e ssh h",
        "sudo TF_VAR_db_password={} terraform apply",
        "curl --user 'bob:{} b' https://x",
        'curl -u "bob:{}/b" https://x',
        "http --auth bob:{} https://x",
        "https -a bob:{} x",
    ],
)
@pytest.mark.parametrize("wrap", ["text", "tool"])
def test_a_weak_password_in_its_place_is_replaced(text: str, wrap: str) -> None:
    """As it is, and in the string of a tool's result."""
    said = f"a\n{text.format(WEAK)}\nb\n"
    if wrap == "tool":
        said = json.dumps({"messages": [{"role": "tool", "content": said}]})
    kept = _text(said)
    assert WEAK not in kept
    assert len(kept) == len(said)
    assert kept.startswith(said.partition("Zq8w" if "Zq8w" in said else WEAK)[0])


@pytest.mark.parametrize("sign", ["#", "/", "?"])
@pytest.mark.parametrize(
    "url", ["https://bob:{}@git.corp.test/x", "DATABASE_URL=postgres://app:{}@db/x"]
)
def test_a_password_of_a_url_may_have_signs_that_end_a_url(url: str, sign: str) -> None:
    """As people paste them."""
    secret = RAW.format(sign)
    kept = _text(f"see {url.format(secret)} ok")
    assert secret not in kept


@pytest.mark.parametrize(
    "text",
    [
        "http://registry.test:4873/@scope/Pkg9a",
        "https://cdn.test:443/npm/Vue3x/Dist2@1.2.3/a.js",
        "http://localhost:8080/a/Bc9/De8@v1",
        "file://C:/Users/Bob7x/a@b",
        "connect(host=db, user=app, password=cfg7pass)",
        "f(server=a, uid=b, pwd=cfg7pass9, x=1)",
        "host=db user=app password=${DB_PASS1} sslmode=require",
        "host=db user=app password=<Your_Pass1> dbname=x",
        "Server=db;User Id=sa;Password={0};",
        "Server=db;User Id=sa;Password=password123;",
        "daemon:*:19000:0:99999:7:::",
        "0 3 * * * PGPASSWORD=$PG_PASS9 pg_dump shop",
        "the option password=Strict2 is another one",
        "curl -u user:password https://h/a b",
    ],
)
@pytest.mark.parametrize("wrap", ["text", "tool"])
def test_its_neighbour_stays(text: str, wrap: str) -> None:
    """A path with `@`, a call, a variable, a word of documentation."""
    said = text if wrap == "text" else json.dumps({"content": f"a\n{text}\nb"})
    assert _text(said) == said
