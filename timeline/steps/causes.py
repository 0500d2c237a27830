"""Find the tool call that made an exchange: the `curl` of a shell, the `git` of a script, the call of an MCP server.

The rules, the strongest first; where several tool calls fit one alone counts:

1. A call of an MCP server has the tool's name and its arguments.
2. The URL is in the arguments: recorded. It begins with one that is there: inferred.
3. A value of the arguments is in the URL or the body.
4. It comes from a process that the tool call has made a request from before.
5. One tool call alone was under way, and the request is not one that the agent makes by itself.
"""

import re

from ...tape.dialects.common.untrusted_json import Json, find_json
from ...tape.exchange import Exchange, RequestClass
from .call import argument_texts
from .lanes import PendingCall
from .step import Evidence

_URL = re.compile(r"https?://[^\s'\"<>|;)`\\]+")
_MIN_VALUE = 3
_MAX_BODY = 64 * 1024


def find_cause(
    exchange: Exchange,
    pending: list[PendingCall],
    agents: frozenset[int],
    hosts: frozenset[str],
    left: frozenset[int] = frozenset(),
) -> tuple[PendingCall, Evidence, str] | None:
    """Find the tool call that made an exchange, with the evidence and what it rests on.

    pending: the tool calls under way, the newest last.
    agents: processes that ask models.
    hosts: what the agent asks by itself, models among it.
    left: answers that their lanes seem to have gone on without: their tool calls count by what is in the request alone, and after the others.
    """
    if not pending or exchange.request_class is RequestClass.TELEMETRY:
        return None
    current = [one for one in pending if one.seq not in left]
    newest = [*reversed(current), *(one for one in reversed(pending) if one.seq in left)]
    for one in newest:
        if _is_tool_call_of(exchange, one):
            return one, Evidence.INFERRED, "same tool and arguments"
    url = exchange.request.url
    for one in newest:
        if url in one.text or url.rstrip("/") in _URL.findall(one.text):
            return one, Evidence.RECORDED, "its URL is in the arguments"
    for one in newest:
        if any(_begins(url, found) for found in _URL.findall(one.text)):
            return one, Evidence.INFERRED, "its URL begins with one in the arguments"
    process = exchange.lane.number if exchange.lane is not None else 0
    for some in (current, [one for one in newest if one.seq in left]):
        fitting = [(value, one) for one in some if (value := _shared_value(exchange, one))]
        if len(fitting) == 1:
            value, one = fitting[0]
            return one, Evidence.INFERRED, f"{value[:40]!r} is in its arguments"
    of_process = [one for one in current if process and process in one.processes]
    if len(of_process) == 1 and process not in agents:
        return of_process[0], Evidence.INFERRED, "same process as another of its requests"
    if len(current) == 1 and (process not in agents or exchange.request.authority not in hosts):
        return current[0], Evidence.INFERRED, "the one tool call under way"
    return None


def _is_tool_call_of(exchange: Exchange, one: PendingCall) -> bool:
    body = exchange.request.body
    if b"tools/call" not in body[:_MAX_BODY]:
        return False
    tree = find_json(body)
    params = tree.get("params") if isinstance(tree, dict) else None
    if not isinstance(params, dict):
        return False
    name: Json = params.get("name")
    return (
        isinstance(name, str)
        and bool(name)
        and (one.name == name or one.name.endswith((f"_{name}", f".{name}", f"-{name}")))
        and (params.get("arguments") or {}) == (one.arguments or {})
    )


def _begins(url: str, found: str) -> bool:
    found = found.rstrip("/")
    return url.startswith(found) and (len(url) == len(found) or url[len(found)] in "/?&#.")


def _shared_value(exchange: Exchange, one: PendingCall) -> str | None:
    """Find a value of the arguments that is in a request."""
    target = exchange.request.target
    body = exchange.request.body[:_MAX_BODY].decode("utf-8", "replace")
    for value in argument_texts(one.arguments):  # type: ignore[arg-type]
        if len(value) >= _MIN_VALUE and (value in target or value in body):
            return value
    return None
