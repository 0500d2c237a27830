"""What tools of clouds and databases print: tables, columns, lines of configuration."""

import json

import pytest

from playhead.tape.redaction.redactor import Redactor

SECRET = "Kq8vN2xPz7RtW4mYb1LcD9sFh3GjE6uAo5TiXw0Z"


def _text(text: str) -> str:
    return Redactor(b"k" * 32).text(text.encode()).decode()


@pytest.mark.parametrize(
    "text",
    [
        "Access key ID,Secret access key\nAKIAQ7ZK2V5T3XWPLM4N,{}\n",
        "User name,Access key ID,Secret access key,Console login link\nbob,AKIAQ7ZK2V5T3XWPLM4N,{},x\n",
        "aws configure set aws_secret_access_key {}\n",
        "aws configure set default.aws_session_token {}\n",
        "||  AccessKeyId      |  AKIAQ7ZK2V5T3XWPLM4N  ||\n||  SecretAccessKey  |  {}  ||\n",
        "|  api_token  |  {}  |\n",
        " id | api_key\n----+------------------------------------------\n  1 | {}\n",
        " id |                 api_key                  | x\n----+------------------------------------------+---\n  1 | {} | y\n",
        '{{"ARN": "a", "Name": "prod/key", "SecretString": "{}"}}',
    ],
)
def test_a_secret_is_replaced(text: str) -> None:
    """And what is around it stays."""
    said = text.format(SECRET)
    kept = _text(said)
    assert SECRET not in kept
    assert len(kept) == len(said)
    assert kept.endswith(said.rpartition(SECRET)[2])


@pytest.mark.parametrize(
    "text",
    [
        "| name | type |\n| --- | --- |\n| api_key | string_of_32_characters |\n| token | https://h.test/docs/Token9 |\n",
        " id | api_key_id\n----+------------\n  1 | 3f2504e0-4f89-11d3-9a0c-0305e82c3301\n",
        "aws configure set region eu-west-1\naws configure set default.token_path /home/Bob7/.aws/token9\n",
        "a | monkey | Kq8vN2xPz7RtW4mYb1Lc\n",
        json.dumps({"content": f"| api_token | {SECRET} |"}),
    ],
)
def test_its_neighbour_stays(text: str) -> None:
    """Words, addresses, other names, a table in a prompt."""
    assert _text(text) == text
