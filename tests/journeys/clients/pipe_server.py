"""A server over standard input and output that does what its requests are called; it notes in `LOG` what it was told."""

import json
import os
import sys

out = sys.stdout.buffer
held = []


def say(data: bytes) -> None:
    out.write(data)
    out.flush()


def answer(number: object, result: object) -> None:
    say(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\n")


with open(os.environ["LOG"], "ab", buffering=0) as log:
    for line in sys.stdin.buffer:
        log.write(line[:200])
        try:
            told = json.loads(line)
        except ValueError:
            say(b"\xff\xfe no JSON: " + line)
            continue
        method, number = told.get("method"), told.get("id")
        match method:
            case "echo":
                answer(number, told["params"])
            case "words":
                say(b"\x00\xff words\r\n")
                answer(number, 1)
            case "swap":
                held.append(number)
                if len(held) == 2:
                    answer(held.pop(), "second")
                    answer(held.pop(), "first")
            case "large":
                answer(number, "x" * (10 << 20))
            case "ask":
                held.append(number)
                say(b'{"jsonrpc": "2.0", "id": "s1", "method": "roots/list"}\n')
            case "push":
                say(b'{"jsonrpc": "2.0", "method": "notifications/message", "params": 1}\n')
            case "end":
                say(b'{"jsonrpc": "2.0", "id')
                sys.exit(4)
            case None if "result" in told:
                answer(held.pop(), {"got": told["result"]})
