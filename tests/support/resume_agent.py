"""An agent of forty steps, each of which depends on all answers before it: models, reads and effects, some with idempotency keys.

    python -m playhead.tests.support.resume_agent URL

Its last line is its answer, which no other course of answers has.
"""

import hashlib
import json
import sys
import urllib.request
from typing import Any

CHAT = "/v1/chat/completions"
STEPS = 40


def plan(step: int) -> str:
    """Say what a step asks for: `m` a model, `r` a read, `e` an effect, `k` one with an idempotency key."""
    return "mrmemkrmek"[step % 10]


def name_of(step: int, so_far: str) -> str:
    """Give the name of what a step asks for; it follows from all answers before it."""
    return f"{plan(step)}{step}-{so_far[:8]}"


def send(url: str, name: str) -> bytes:
    """Ask for it."""
    kind, fields, body = name[0], {"content-type": "application/json"}, b""
    path = f"/effects/{name}"
    if kind == "m":
        path, asked = CHAT, {"model": "gpt-4o", "messages": [{"role": "user", "content": name}]}
        body = json.dumps(asked).encode()
    elif kind == "r":
        path = f"/reads/{name}"
    else:
        body = json.dumps({"do": name}).encode()
        if kind == "k":
            fields["idempotency-key"] = f"key-{name}"
    request = urllib.request.Request(url + path, body or None, fields)
    with urllib.request.urlopen(request, timeout=60) as response:
        found: Any = response.read()
    return bytes(found)


def main(url: str) -> str:
    """Do all steps; give the answer."""
    so_far = hashlib.sha256(b"").hexdigest()
    for step in range(STEPS):
        said = send(url, name_of(step, so_far))
        so_far = hashlib.sha256(so_far.encode() + said).hexdigest()
    return so_far


if __name__ == "__main__":
    print(main(sys.argv[1]), flush=True)
