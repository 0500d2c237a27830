"""`playhead cost` of a model without a price: where prices come from, and what can be done."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from playhead.proxy.cli import cli
from playhead.proxy.looking_back import cost

ANSWER = {
    "model": "my-own-model",
    "choices": [],
    "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
}


@pytest.mark.parametrize(
    ("has_prices", "said"),
    [
        (True, "prices are those of the package genai-prices, for answers that state"),
        (False, "pip install 'playhead[prices]'"),
    ],
)
def test_a_model_without_a_price_is_told_where_prices_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_prices: bool, said: str
) -> None:
    """On stderr, once; the table stays as it is."""
    monkeypatch.setattr(cost, "has_prices", lambda: has_prices)
    lines = tmp_path / "mine.jsonl"
    request = {
        "method": "POST",
        "url": "https://llm.internal/v1/chat/completions",
        "body": json.dumps({"model": "my-own-model", "messages": []}),
        "headers": {"content-type": "application/json"},
    }
    response = {
        "status": 200,
        "headers": {"content-type": "application/json"},
        "body": json.dumps(ANSWER),
    }
    lines.write_text(json.dumps({"request": request, "response": response}))
    store = ["--store", str(tmp_path / "store")]
    runner = CliRunner()
    made = runner.invoke(cli, ["import", "--jsonl", *store, str(lines)], standalone_mode=False)
    assert made.exception is None
    done = runner.invoke(cli, ["cost", *store, "mine"], standalone_mode=False)
    assert "1 call without a known price" in done.stdout
    assert said in done.stderr
    assert done.stderr.count("playhead: ") == 1
