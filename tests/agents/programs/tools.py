"""The tools of every Python program here: two look at the shop's API over the network, one reads a file."""

import json
import urllib.request
from pathlib import Path

SHOP = "https://api.shop.example"


def look_up(number: int) -> str:
    """Look up an item of the shop.

    Args:
        number: The number of the item.
    """
    return _open(urllib.request.Request(f"{SHOP}/items/{number}"))


def place_order(number: int) -> str:
    """Order an item of the shop.

    Args:
        number: The number of the item.
    """
    order = json.dumps({"item": number}).encode()
    headers = {"content-type": "application/json"}
    return _open(urllib.request.Request(f"{SHOP}/orders", order, headers))


def read_notes() -> str:
    """Read the notes of the user."""
    return Path("notes.txt").read_text()


def _open(request: urllib.request.Request) -> str:
    with urllib.request.urlopen(request) as answer:
        return str(answer.read().decode())
