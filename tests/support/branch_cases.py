"""Misuses of a branch: what is asked, what is said, and that nothing leaves which was not declared.

`WORDS` are command lines, which are refused before anything runs. `ASKED` are requests of an agent in a branch that runs: what of
them may leave is listed, and a listener counts.

The tape is that of `refund_agent`: 1 the model, 2 the order, 3 the model, 4 the refund (an effect), 5 the model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from .refund_agent import CHAT

LIVE = ("--live", "inference", "--reason", "r")
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Words:
    """A command line that is refused."""

    name: str
    words: tuple[str, ...]
    """Behind `branch`, or from the command's own name on; `URL` stands for the service's, `FILE` for a file with `text`."""
    says: str
    """Is in what is said."""
    text: str = ""
    """Of FILE."""


GO = ("--", "true")
WORDS = (
    # What is missing
    Words("no command", ("tape", "--at", "3"), "a branch runs the command that you give"),
    Words("a tape that carries a command", ("carries", "--at", "1"), "was recorded with: touch"),
    Words("no point", ("tape", *GO), "Missing option '--at'"),
    Words("no run", ("nobody", "--at", "3", *GO), "nobody"),
    Words("live without a reason", ("tape", "--at", "3", "--live", "inference", *GO), "--reason"),
    Words(
        "a route without a reason",
        ("tape", "--at", "3", "--route", "POST URL/v1/refunds=http://127.0.0.1:9", *GO),
        "--reason",
    ),
    Words(
        "a reason for nothing", ("tape", "--at", "3", "--reason", "r", *GO), "--reason goes with"
    ),
    Words(
        "an empty reason",
        ("tape", "--at", "3", "--live", "inference", "--reason", " ", *GO),
        "reason",
    ),
    Words("nobody is asked", ("tape", "--at", "3", *LIVE, *GO), "say --yes"),
    # Points
    Words(
        "before the first",
        ("tape", "--at", "0", *GO),
        "has no such exchange; expected one from 1 to 5",
    ),
    Words("behind the last", ("tape", "--at", "6", *GO), "has no such exchange"),
    Words("below zero", ("tape", "--at", "-1", *GO), "'-1' is no step of a run"),
    Words("no number", ("tape", "--at", "x", *GO), "--at"),
    Words("beyond 64 bits", ("tape", "--at", str(1 << 70), *GO), "has no such exchange"),
    Words("a playback", ("tape@1", "--at", "3", *GO), "is a playback of 'tape'"),
    # Classes
    Words(
        "effects live",
        ("tape", "--at", "3", "--live", "effect=127.0.0.1", "--reason", "r", "--yes", *GO),
        "effects never go live",
    ),
    Words(
        "telemetry live",
        ("tape", "--at", "3", "--live", "telemetry", "--reason", "r", "--yes", *GO),
        "expected inference or read",
    ),
    Words(
        "everything live",
        ("tape", "--at", "3", "--live", "*", "--reason", "r", "--yes", *GO),
        "cannot go live",
    ),
    Words(
        "live without hosts",
        ("tape", "--at", "3", "--live", "inference=", "--reason", "r", "--yes", *GO),
        "names no host",
    ),
    Words(
        "a class that the tape has not",
        ("plain", "--at", "1", "--live", "inference", "--reason", "r", "--yes", *GO),
        "has no request of class inference",
    ),
    Words(
        "every host",
        ("tape", "--at", "3", "--live", "inference=*", "--reason", "r", "--yes", *GO),
        "*",
    ),
    Words(
        "a host with a path",
        ("tape", "--at", "3", "--live", "inference=a.test/v1", "--reason", "r", "--yes", *GO),
        "a.test/v1",
    ),
    Words(
        "a host with a scheme",
        ("tape", "--at", "3", "--live", "inference=http://a.test", "--reason", "r", "--yes", *GO),
        "http",
    ),
    Words(
        "an empty host",
        ("tape", "--at", "3", "--live", "inference=a.test,", "--reason", "r", "--yes", *GO),
        "names no host",
    ),
    Words(
        "more hosts than live_max",
        (
            "tape",
            "--at",
            "3",
            "--live",
            "inference=a.test,b.test,c.test,d.test,e.test,f.test",
            "--reason",
            "r",
            "--yes",
            *GO,
        ),
        "live_max is 5",
    ),
    # Routes
    Words(
        "a route to nowhere",
        ("tape", "--at", "3", "--route", "POST URL/v1/refunds", "--reason", "r", "--yes", *GO),
        "is no route",
    ),
    Words(
        "a route with credentials",
        (
            "tape",
            "--at",
            "3",
            "--route",
            "POST URL/v1/refunds=http://a:b@127.0.0.1:9",
            "--reason",
            "r",
            "--yes",
            *GO,
        ),
        "nothing else",
    ),
    Words(
        "a route with a query",
        (
            "tape",
            "--at",
            "3",
            "--route",
            "POST URL/v1/refunds=http://127.0.0.1:9/?a=b",
            "--reason",
            "r",
            "--yes",
            *GO,
        ),
        "nothing else",
    ),
    Words(
        "a route without a host",
        (
            "tape",
            "--at",
            "3",
            "--route",
            "POST URL/v1/refunds=http:///x",
            "--reason",
            "r",
            "--yes",
            *GO,
        ),
        "names no host",
    ),
    Words(
        "a route with a bad port",
        (
            "tape",
            "--at",
            "3",
            "--route",
            "POST URL/v1/refunds=http://127.0.0.1:99999",
            "--reason",
            "r",
            "--yes",
            *GO,
        ),
        "is no URL",
    ),
    Words(
        "a route of no pattern",
        (
            "tape",
            "--at",
            "3",
            "--route",
            "refunds=http://127.0.0.1:9",
            "--reason",
            "r",
            "--yes",
            *GO,
        ),
        "--route",
    ),
    # Answers
    Words(
        "two changes",
        ("tape", "--at", "3", "--answer", "FILE", "--edit", *GO),
        "change the same exchange",
    ),
    Words("no such file", ("tape", "--at", "3", "--answer", "nowhere.json", *GO), "cannot be read"),
    Words(
        "an answer that is no JSON",
        ("tape", "--at", "3", "--answer", "FILE", *GO),
        "$: the answer is no JSON: line 1, column 2",
        "{x",
    ),
    Words(
        "an answer that is no UTF-8",
        ("tape", "--at", "3", "--answer", "FILE", *GO),
        "$: the answer is no JSON",
        "\udcff",
    ),
    Words(
        "an answer with nothing",
        ("tape", "--at", "3", "--answer", "FILE", *GO),
        "$.choices: expected an array, found nothing",
        "{}",
    ),
    Words(
        "choices that are none",
        ("tape", "--at", "3", "--answer", "FILE", *GO),
        "$.choices: expected an array, found an object",
        '{"choices": {}}',
    ),
    Words(
        "a message that is a text",
        ("tape", "--at", "3", "--answer", "FILE", *GO),
        "$.choices[0].message: expected an object, found a string",
        '{"choices": [{"message": "hi"}]}',
    ),
    Words(
        "calls that are none",
        ("tape", "--at", "3", "--answer", "FILE", *GO),
        "$.choices[0].message.tool_calls",
        '{"choices": [{"message": {"role": "assistant", "tool_calls": {"a": 1}}}]}',
    ),
    Words(
        "a tool without a name",
        ("tape", "--at", "3", "--answer", "FILE", *GO),
        "$.choices[0].message.tool_calls[0].function.name",
        '{"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": 7, "arguments": "{}"}}]}}]}',
    ),
    Words(
        "arguments that are no JSON",
        ("tape", "--at", "3", "--answer", "FILE", *GO),
        "$.choices[0].message.tool_calls[0].function.arguments: the arguments of 'refund' are no JSON",
        '{"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "refund", "arguments": "{order"}}]}}]}',
    ),
    Words("no editor", ("tape", "--at", "3", "--edit", *GO), "no editor is known"),
    # Requests that are asked otherwise
    Words(
        "a system prompt and nothing live",
        ("tape", "--at", "1", "--system", "FILE", *GO),
        "add --live inference",
        "x",
    ),
    Words(
        "a system prompt of an effect",
        ("tape", "--at", "4", "--system", "FILE", *LIVE, "--yes", *GO),
        "is no call of a model",
        "x",
    ),
    Words(
        "a system prompt at another host",
        (
            "tape",
            "--at",
            "1",
            "--system",
            "FILE",
            "--live",
            "inference=a.test",
            "--reason",
            "r",
            "--yes",
            *GO,
        ),
        "which --live does not name",
        "x",
    ),
    Words(
        "a call without a system prompt",
        ("plain", "--at", "2", "--system", "FILE", "--live", "read", "--reason", "r", "--yes", *GO),
        "is no call of a model",
        "x",
    ),
    Words(
        "a change that is a list",
        ("tape", "--at", "1", "--request-change", "FILE", *LIVE, "--yes", *GO),
        "expected an object",
        "[]",
    ),
    Words(
        "a change that is no JSON",
        ("tape", "--at", "1", "--request-change", "FILE", *LIVE, "--yes", *GO),
        "$: the change is no JSON",
        "{",
    ),
    Words(
        "a change without messages",
        ("tape", "--at", "1", "--request-change", "FILE", *LIVE, "--yes", *GO),
        "$.messages",
        '{"messages": null}',
    ),
    Words(
        "a change of messages to a text",
        ("tape", "--at", "1", "--request-change", "FILE", *LIVE, "--yes", *GO),
        "$.messages: expected an array, found a string",
        '{"messages": "hi"}',
    ),
    # The file of answers
    Words(
        "answers that are none",
        ("tape", "--at", "3", "--answers", "FILE", *GO),
        "holds no answers",
        "answers: []",
    ),
    Words(
        "answers without a match",
        ("tape", "--at", "3", "--answers", "FILE", *GO),
        "match",
        "answers:\n- answer: {json: {}}",
    ),
    Words(
        "answers without an answer",
        ("tape", "--at", "3", "--answers", "FILE", *GO),
        "answer",
        "answers:\n- match: GET https://a.test/",
    ),
    Words(
        "answers with a status of none",
        ("tape", "--at", "3", "--answers", "FILE", *GO),
        "status",
        "answers:\n- match: GET https://a.test/\n  answer: {status: 99}",
    ),
    # Caps
    Words(
        "a cap of 0",
        ("tape", "--at", "3", *LIVE, "--yes", "--cap", "0", *GO),
        "no amount of US dollars above 0",
    ),
    Words("a cap below 0", ("tape", "--at", "3", *LIVE, "--yes", "--cap", "-1", *GO), "--cap"),
    Words(
        "no calls at all",
        ("tape", "--at", "3", *LIVE, "--yes", "--max-calls", "0", *GO),
        "--max-calls",
    ),
    Words(
        "a cap of what does not leave",
        ("tape", "--at", "3", "--cap", "1", *GO),
        "nothing is declared",
    ),
    Words("no times", ("tape", "--at", "3", "--times", "0", *GO), "--times"),
)


@dataclass(frozen=True)
class Request:
    """One request of an agent."""

    what: str
    """METHOD and path."""
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    host: str = ""
    """Another than the shop's."""


def chat(text: str) -> Request:
    """Give a model call that is on no tape."""
    return Request(
        f"POST {CHAT}", {"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}
    )


REFUND = Request("POST /v1/refunds", {"order": 8, "amount": 1})
READ = Request("GET /v1/refunds?order=8")


@dataclass(frozen=True)
class Asked:
    """Requests in a branch at 2, and which of them may leave."""

    name: str
    requests: tuple[Request, ...]
    declared: tuple[str, ...] = ()
    """Of `inference`, `read`, `route`."""
    before: bool = False
    """Whether they come before the point; else behind it."""
    leaves: tuple[str, ...] = ()
    """METHOD and path of what reaches the shop or the sandbox."""
    sandboxed: bool = False
    statuses: tuple[int, ...] = (424,)
    calls: int | None = None
    """The limit of calls."""


ASKED = (
    Asked("a miss before the point", (chat("other"),), ("inference", "read", "route"), before=True),
    Asked("a read before the point", (READ,), ("read",), before=True),
    Asked("an effect before the point", (REFUND,), ("route",), before=True),
    Asked("a miss, and nothing live", (chat("other"),)),
    Asked("a miss of another class", (READ,), ("inference",)),
    Asked("an effect is stubbed", (REFUND,), ("inference", "read"), statuses=(200,)),
    Asked("a deletion", (Request("DELETE /orders/7"),), ("inference", "read")),
    Asked(
        "another host",
        (Request(f"POST {CHAT}", {"model": "m", "messages": []}, host="localhost"),),
        ("inference",),
    ),
    Asked(
        "a method in a field",
        (
            Request(
                "POST /v1/chat/completions",
                {"model": "m", "messages": []},
                {"x-http-method-override": "DELETE"},
            ),
        ),
        ("inference",),
    ),
    Asked(
        "a host in a field",
        (Request("GET /v1/refunds?order=9", None, {"x-forwarded-host": "a.test"}),),
        ("read",),
    ),
    Asked("a path that climbs", (Request("GET /v1/%2e%2e/admin"),), ("route",)),
    Asked(
        "a WebSocket",
        (
            Request(
                "GET /feed",
                None,
                {
                    "connection": "upgrade",
                    "upgrade": "websocket",
                    "sec-websocket-version": "13",
                    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
                },
            ),
        ),
        ("read",),
    ),
    Asked(
        "beyond the cap",
        (chat("one"), chat("two")),
        ("inference",),
        leaves=(f"POST {CHAT}",),
        statuses=(200, 424),
        calls=1,
    ),
    # What was declared, for comparison
    Asked(
        "a model that is live",
        (chat("other"),),
        ("inference",),
        leaves=(f"POST {CHAT}",),
        statuses=(200,),
    ),
    Asked(
        "a read that is live",
        (READ,),
        ("read",),
        leaves=("GET /v1/refunds?order=8",),
        statuses=(200,),
    ),
    Asked(
        "an effect in a sandbox",
        (REFUND,),
        ("inference", "route"),
        leaves=("POST /v1/refunds",),
        sandboxed=True,
        statuses=(200,),
    ),
)
