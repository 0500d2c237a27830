"""Passwords drawn from letters, digits and all signs, where quotes, a string of JSON, braces or the end of the line delimit them."""

import json
import random
import string

import pytest

from playhead.tape.redaction.redactor import Redactor

SIGNS = "".join(sign for sign in string.punctuation if sign not in "\"'\\`")
ALL = string.ascii_letters + string.digits + SIGNS
DJANGO = string.ascii_lowercase + string.digits + "!@#$%^&*(-_=+)"
"""The alphabet of `get_random_secret_key`."""
FORMS = {
    "json": '{{"user": "bob", "password": "{}"}}',
    "in a prompt": '{{"messages": [{{"role": "tool", "content": "A=1\\nDB_PASSWORD=\'{}\'\\nB=2\\n"}}]}}',
    "settings, quoted": "A=1\nDB_PASSWORD='{}'\nB=2\n",
    "settings": "A=1\nDB_PASSWORD={}\nB=2\n",
    "yaml": "db:\n  password: {}\n  port: 1\n",
}


def _text(text: str) -> str:
    return Redactor(b"k" * 32).text(text.encode()).decode()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "secret",
    [
        *("d<8dzTV2nst>4<9jkAq9", "nH{qGuyI80dkgdljS}b2", "JZKKLVoL6iK[u]ogKR81", "s#1pNo&#mI39(%s!FP1z)3w^", "Qp(d3PoSRm0cNbxaepNX1P)G"),
        *("$Y^kfK^UKSk^pfosi*tr#&vw", "@bW@h4Q4Ws?x@2k?s@BrzW@?", "OAWE7(ab)x-control-kX9mP2vL7qT4", "nq*R_){[AeHOMyyNU3gu", "BK01&}{&(70.rru(1!N&"),
    ],
)  # fmt: skip
def test_a_password_with_signs_is_replaced(secret: str, form: str) -> None:
    """Whole, and nothing around it."""
    said = FORMS[form].format(secret)
    kept = _text(said)
    before, _, after = said.partition(secret)
    assert secret not in kept
    assert kept.startswith(before)
    assert kept.endswith(after)


@pytest.mark.parametrize("form", FORMS)
def test_nearly_all_drawn_passwords_are_replaced(form: str) -> None:
    """A few have the form of a call, a template or a list by chance."""
    drawn = random.Random(18)
    secrets = ["".join(drawn.choices(ALL, k=20)) for _ in range(100)]
    assert sum(one in _text(FORMS[form].format(one)) for one in secrets) <= 12


def test_keys_of_django_are_replaced() -> None:
    """Whose alphabet has brackets and no capitals."""
    drawn = random.Random(18)
    secrets = ["".join(drawn.choices(DJANGO, k=50)) for _ in range(100)]
    assert sum(one in _text(f"DEBUG = True\nSECRET_KEY = '{one}'\n") for one in secrets) <= 3


def test_quotes_and_backslashes_are_parts_of_a_password() -> None:
    """As JSON escapes them, among the first characters too."""
    drawn = random.Random(18)
    secrets = ["".join(drawn.choices(ALL + "\"'\\`", k=20)) for _ in range(100)]
    left = 0
    for one in secrets:
        kept = _text(json.dumps({"password": one, "port": 5432}))
        left += json.loads(kept)["password"] == one
        assert json.loads(kept)["port"] == 5432
    assert left <= 4


@pytest.mark.parametrize("secret", ["kX9mP2vL7qT4zz", "kX9;mP2(vL7qT4", "q]W3$x8Zr(5tLm"])
def test_a_password_in_braces_of_odbc_is_replaced(secret: str) -> None:
    """The braces stay."""
    text = "DRIVER={ODBC Driver 18};SERVER=db;UID=sa;PWD={%s};Encrypt=yes"
    kept = _text(text % secret)
    assert secret not in kept
    before, _, after = (text % secret).partition(secret)
    assert kept.startswith(before)
    assert kept.endswith(after)


@pytest.mark.parametrize(
    "value",
    [
        *("${DB_Password1}", "${DB_PASSWORD:-Xk9mP2}", "{{ vault.Db_Pass2 }}", "{{vault_db.Pass1}}", "<your-Password-1>", "<Your_Db_Pass_42>"),
        *("%(Password1)s", "%(user)s:%(Pass2)s", "$(pass show Db/Prod1)", "$(cat /run/Secrets1/db)", "#{ENV.DB_Pass1}", "@DbPassword1", "%DB_PASS_1%"),
        *("$DB_PASSWORD_2", "process.env.DB_Pass1", "config[DB_Pass1]", "getPassword(Db1,Prod2)", "os.environ[DB_Pass1]", "<%= Db.pass1 %>"),
        *("^(?=.*[A-Z])(?=.*[0-9]).{8,}$", "[a-zA-Z0-9!@#]{8,64}", "ENC[AES256_GCM,data:Kx9mP2v,iv:L7qT4zz8w=,tag:Qm2pZ9==]"),
        *("{user}:{pass}@{host}:{port}", "@Microsoft.KeyVault(SecretUri=https://v1.vault.azure.net/secrets/Db2)", "[Redacted_2026]"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", FORMS)
def test_a_template_stays(value: str, form: str) -> None:
    """What is filled in later, a call, an item, a pattern."""
    text = FORMS[form].format(value)
    assert _text(text) == text


@pytest.mark.parametrize(
    "code",
    [
        "u='&password='+encodeURIComponent(a[0].B1)+'&x'",
        'f("token="+e.d(T[1],n(3))+"&a="+b)',
        "token = tokens[idx1](B2, c3) + parse(X9)[0]",
        "const {token:{Ab1:c2},key:[d3,E4]}=f(G5)",
        "password = input(f'{Name1}[{B2}]: ')",
        "secret=(lambda x1:X2[x1](Y3))(Z4)",
    ],
)
def test_code_stays(code: str) -> None:
    """Between two strings, and behind a sign of its own."""
    assert _text(code) == code


@pytest.mark.parametrize(
    "text", ["token={}&name=bob", "a=1;Password={};Encrypt=true;", "PASSWORD={},port=1"]
)
def test_what_follows_a_value_in_a_list_stays(text: str) -> None:
    """A value to the end of its line has no other setting in it."""
    secret = "kX9mP2vL7qT4zz8Wn3qY7zBd"
    assert _text(text.format(secret)).endswith(text.partition("{}")[2])
