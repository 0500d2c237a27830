"""Traffic of agents as a proxy sees it, made up from a seed, for what depends on what bodies say.

Text is drawn from a vocabulary by frequency, so that it is about as compressible as prose and source are; ids, signatures,
screenshots and the like are random. Requests repeat the whole conversation, as those of real agents do. What is known of
the wire (order of fields, events of a stream, padding, headers) is after captures of the providers named.
"""

import base64
import itertools
import json
import random
import string
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_ID = string.ascii_letters + string.digits
_MESSAGES_HOST = "api.anthropic.com"
_CHAT_HOST = "api.openai.com"


class Passed(NamedTuple):
    """One exchange."""

    run: str
    host: str
    path: str
    asked_head: list[tuple[bytes, bytes]]
    asked: bytes
    said_head: list[tuple[bytes, bytes]]
    said: bytes

    @property
    def size(self) -> int:
        """Bytes of bodies and header fields."""
        fields = (*self.asked_head, *self.said_head)
        return len(self.asked) + len(self.said) + sum(len(a) + len(b) + 4 for a, b in fields)


class Words:
    """Text from a seed."""

    def __init__(self, seed: str) -> None:
        self.rng = rng = random.Random(seed)
        letters = "etaoinshrdlucmfwypvbgkxqjz"
        weights = [1 / (at + 2) for at in range(len(letters))]
        words = [
            "".join(rng.choices(letters, weights, k=max(2, int(rng.gauss(6, 2.5)))))
            for _ in range(4000)
        ]
        common = list(itertools.accumulate(1 / (at + 3) for at in range(4000)))
        self._words = words
        self.said: list[str] = []
        """What tools have printed."""
        # People and models repeat turns of phrase, and programs their lines, more than words drawn one by one do.
        self._phrases = [
            " ".join(rng.choices(words, cum_weights=common, k=rng.randrange(2, 7)))
            for _ in range(2500)
        ]
        self._often = list(itertools.accumulate(1 / (at + 20) for at in range(2500)))

    def prose(self, size: int) -> str:
        """About so many bytes of prose."""
        found: list[str] = []
        while size > 0:
            found.append(self.rng.choices(self._phrases, cum_weights=self._often)[0])
            size -= len(found[-1]) + 2
        return ", ".join(found).capitalize() + "."

    def source(self, size: int) -> str:
        """About so many bytes of source, or of what a tool prints: lines that resemble each other."""
        names = self.rng.choices(self._words[20:], k=6)
        lines: list[str] = []
        while size > 0:
            name, other = self.rng.choices(names, k=2)
            form = self.rng.choice(
                (
                    "    if {0}.{1}({0!r}):",
                    "        {0} = self._{1}[{0!r}]",
                    "src/{0}/{1}.py:{3}: {2}",
                    "    return {1}({0}, {3})",
                    "# {2}",
                )
            )
            phrase = self.rng.choices(self._phrases, cum_weights=self._often)[0]
            lines.append(form.format(name, other, phrase, self.rng.randrange(900)))
            size -= len(lines[-1]) + 1
        return "\n".join(lines)

    def id(self, size: int = 24) -> str:
        """A random id."""
        return "".join(self.rng.choices(_ID, k=size))


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _tools(words: Words, count: int) -> list[dict[str, Any]]:
    return [
        {
            "name": f"tool_{number}",
            "description": words.prose(400),
            "input_schema": {
                "type": "object",
                "properties": {
                    f"field_{field}": {"type": "string", "description": words.prose(90)}
                    for field in range(4)
                },
                "required": ["field_0"],
            },
        }
        for number in range(count)
    ]


def _events(words: Words, text: str, call: dict[str, Any]) -> bytes:
    """A stream of events that says a text and calls a tool, padded as Anthropic's are."""
    rng = words.rng
    found: list[str] = []

    def event(kind: str, data: dict[str, Any]) -> None:
        body = _compact({"type": kind, **data})
        found.append(f"event: {kind}\ndata: {body[:-1]}{' ' * rng.randrange(16)}}}\n\n")

    usage = {"input_tokens": 3, "cache_read_input_tokens": rng.randrange(10**5), "output_tokens": 1}
    message = {"id": "msg_01" + words.id(22), "role": "assistant", "content": [], "usage": usage}
    event("message_start", {"message": {"model": "model-1", "type": "message", **message}})
    pieces = (("text_delta", "text", text), ("input_json_delta", "partial_json", _compact(call)))
    for index, (kind, field, whole) in enumerate(pieces):
        event("content_block_start", {"index": index, "content_block": {"type": kind[:4]}})
        at = 0
        while at < len(whole):
            size = rng.choice((2, 4, 5, 6, 9, 14))
            delta = {"type": kind, field: whole[at : at + size]}
            event("content_block_delta", {"index": index, "delta": delta})
            at += size
        event("content_block_stop", {"index": index})
    end = {"delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": rng.randrange(2000)}}
    event("message_delta", end)
    event("message_stop", {})
    return "".join(found).encode()


def _heads(
    words: Words, host: str, size: int
) -> tuple[list[tuple[bytes, bytes]], list[tuple[bytes, bytes]]]:
    rng = words.rng
    asked = {
        "host": host,
        "accept": "application/json",
        "content-type": "application/json",
        "user-agent": "Agent/JS 1.2.3",
        "authorization": "Bearer 0123456789abcdef0123456789abcdef",
        "x-stainless-lang": "js",
        "x-stainless-package-version": "0.71.2",
        "x-stainless-os": "Linux",
        "x-stainless-runtime-version": "v22.11.0",
        "x-stainless-timeout": "600",
        "content-length": str(size),
    }
    said = {
        "date": f"Tue, 09 Dec 2025 {rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02} GMT",
        "content-type": "text/event-stream; charset=utf-8",
        "transfer-encoding": "chunked",
        "cache-control": "no-cache",
        "x-ratelimit-remaining-tokens": str(rng.randrange(100_000, 200_000)),
        "request-id": "req_011" + words.id(21),
        "organization-id": "bb1f1085-e256-7737-3ca0-df6bffc7ba6b",
        "strict-transport-security": "max-age=31536000; includeSubDomains; preload",
        "x-envoy-upstream-service-time": str(rng.randrange(900, 9000)),
        "via": "1.1 google",
        "cf-cache-status": "DYNAMIC",
        "server": "cloudflare",
        "cf-ray": f"{rng.getrandbits(64):016x}-VIE",
    }
    return tuple(  # type: ignore[return-value]
        [(name.encode(), value.encode()) for name, value in head.items()] for head in (asked, said)
    )


class _Agent:
    """A conversation that goes on; its messages are serialised once."""

    def __init__(
        self, words: Words, run: str, system: str, tools: str, *, clock: bool = False
    ) -> None:
        self.words = words
        self._run = run
        self._system, self._tools, self._clock = system, tools, clock
        self.messages: list[str] = []
        self._steps = 0

    def tell(self, content: list[dict[str, Any]]) -> None:
        """Add what the user, or a tool, says."""
        self.messages.append(_compact({"role": "user", "content": content}))

    def step(self, text_size: int) -> Passed:
        """Ask the model, and add its answer."""
        words = self.words
        # The marker of a prompt cache stands at the newest message.
        sent = [
            *self.messages[:-1],
            self.messages[-1][:-3] + ',"cache_control":{"type":"ephemeral"}}]}',
        ]
        system, clock = self._system, ""
        if self._clock:
            clock = f"Current time: 2025-12-09T{self._steps // 180:02}:{self._steps // 3 % 60:02}:{self._steps * 7 % 60:02}Z. "
        told = _compact([{"type": "text", "text": clock + system}])
        parts = [f'"messages":[{",".join(sent)}]', f'"system":{told}', f'"tools":{self._tools}']
        if self._clock:
            parts = parts[1:] + parts[:1]
        asked = (
            '{"model":"model-1",' + ",".join(parts) + ',"max_tokens":32000,"stream":true}'
        ).encode()
        text, call = words.prose(text_size), {"field_0": words.source(120), "field_1": words.id(8)}
        said = _events(words, text, call)
        use = {"type": "tool_use", "id": "toolu_01" + words.id(22), "name": "tool_1", "input": call}
        content = [{"type": "text", "text": text}, use]
        self.messages.append(_compact({"role": "assistant", "content": content}))
        self._steps += 1
        heads = _heads(words, _MESSAGES_HOST, len(asked))
        return Passed(
            self._run, _MESSAGES_HOST, "/v1/messages?beta=true", heads[0], asked, heads[1], said
        )


def _result(words: Words, size: int) -> list[dict[str, Any]]:
    # Files are read again, and commands say the same again.
    text = words.rng.choice(words.said[-40:]) if words.said and words.rng.random() < 0.2 else ""
    if not text:
        text = words.source(size)
        words.said.append(text)
    content = [{"type": "text", "text": text}]
    return [{"type": "tool_result", "tool_use_id": "toolu_01" + words.id(22), "content": content}]


def long_run(seed: int, quick: bool, *, clock: bool = False) -> Iterator[Passed]:
    """One run of 1,500 steps; the older half of the conversation is summed up where it passes 1 MB."""
    words = Words(f"long {seed}")
    system, tools = words.prose(9000), _compact(_tools(words, 18))
    agent = _Agent(words, "long", system, tools, clock=clock)
    agent.tell([{"type": "text", "text": words.prose(600)}])
    for _ in range(200 if quick else 1500):
        yield agent.step(int(words.rng.expovariate(1 / 220)) + 40)
        agent.tell(_result(words, int(words.rng.expovariate(1 / 2600)) + 60))
        if sum(map(len, agent.messages)) > 1_000_000:
            summary = _compact(
                {"role": "user", "content": [{"type": "text", "text": words.prose(900)}]}
            )
            agent.messages = [summary, *agent.messages[len(agent.messages) // 2 | 1 :]]


def tickets(seed: int, quick: bool) -> Iterator[Passed]:
    """200 runs of some 12 calls each: one policy, 14 tools, short answers that are not streamed."""
    words = Words(f"tickets {seed}")
    rng = words.rng
    policy, tools = words.prose(6500), json.dumps(_tools(words, 14))
    for ticket in range(40 if quick else 200):
        messages = [json.dumps({"role": "system", "content": policy})]
        messages.append(
            json.dumps({"role": "user", "content": words.prose(rng.randrange(60, 300))})
        )
        for _ in range(rng.randrange(8, 17)):
            asked = f'{{"messages": [{", ".join(messages)}], "model": "model-2", "temperature": 0.0, "tools": {tools}}}'.encode()
            message: dict[str, Any] = {"role": "assistant", "content": None}
            if rng.random() < 0.5:
                function = {
                    "name": f"tool_{rng.randrange(14)}",
                    "arguments": json.dumps({"field_0": words.id(9)}),
                }
                call = {"id": "call_" + words.id(24), "type": "function", "function": function}
                message["tool_calls"] = [call]
                more = {
                    "role": "tool",
                    "tool_call_id": call["id"],
                    "content": words.source(rng.randrange(80, 900)),
                }
            else:
                message["content"] = words.prose(rng.randrange(80, 400))
                more = {"role": "user", "content": words.prose(rng.randrange(20, 200))}
            yield _completed(words, f"ticket-{ticket}", asked, message)
            messages += [json.dumps(message), json.dumps(more)]


def _completed(words: Words, run: str, asked: bytes, message: dict[str, Any]) -> Passed:
    """Answer a chat in one piece."""
    rng = words.rng
    answer = {
        "id": "chatcmpl-" + words.id(29),
        "object": "chat.completion",
        "created": 1715000000 + rng.randrange(10**6),
        "model": "model-2",
        "choices": [{"index": 0, "message": {**message, "refusal": None}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": rng.randrange(9000), "completion_tokens": rng.randrange(300)},
        "system_fingerprint": "fp_" + words.id(10),
    }
    heads = _heads(words, _CHAT_HOST, len(asked))
    said = json.dumps(answer, indent=2).encode()
    return Passed(run, _CHAT_HOST, "/v1/chat/completions", heads[0], asked, heads[1], said)


def repairs(seed: int, quick: bool) -> Iterator[Passed]:
    """45 runs of some 25 steps: a bug in a project of its own, commands as text and what they print, cut at 10 KB."""
    words = Words(f"repairs {seed}")
    rng = words.rng
    system, form = words.prose(900), words.prose(4500)
    for run in range(8 if quick else 45):
        project = Words(f"repairs {seed} {run}")
        task = f"{project.prose(rng.randrange(600, 3000))}\n\n{form}"
        messages = [
            json.dumps({"role": "system", "content": system}),
            json.dumps({"role": "user", "content": task}),
        ]
        for _ in range(rng.randrange(15, 36)):
            asked = f'{{"messages": [{", ".join(messages)}], "model": "model-2", "drop_params": true}}'.encode()
            thought, command = words.prose(rng.randrange(60, 500)), project.source(150)
            message = {
                "role": "assistant",
                "content": f"THOUGHT: {thought}\n\n```bash\n{command}\n```",
            }
            yield _completed(words, f"repair-{run}", asked, message)
            (printed,) = _result(project, min(10_000, int(rng.expovariate(1 / 4200)) + 40))
            text = (
                f"<returncode>0</returncode>\n<output>\n{printed['content'][0]['text']}\n</output>"
            )
            messages += [json.dumps(message), json.dumps({"role": "user", "content": text})]


def lanes(seed: int, quick: bool) -> Iterator[Passed]:
    """Runs in each of which four agents take turns, in no order; they share system prompt and tools."""
    words = Words(f"lanes {seed}")
    system, tools = words.prose(7000), _compact(_tools(words, 12))
    for run in range(2 if quick else 7):
        agents = [_Agent(words, f"lanes-{run}", system, tools) for _ in range(4)]
        for agent in agents:
            agent.tell([{"type": "text", "text": words.prose(400)}])
        for _ in range(240):
            agent = words.rng.choice(agents)
            yield agent.step(int(words.rng.expovariate(1 / 200)) + 40)
            agent.tell(_result(words, int(words.rng.expovariate(1 / 1800)) + 60))


def screenshots(seed: int, quick: bool) -> Iterator[Passed]:
    """An agent that looks at a screen: a picture with each step, the last ten of them in each prompt."""
    words = Words(f"screens {seed}")
    agent = _Agent(words, "screens", words.prose(5000), _compact(_tools(words, 6)))
    agent.tell([{"type": "text", "text": words.prose(300)}])
    pictures: list[int] = []
    for step in range(30 if quick else 120):
        yield agent.step(120)
        if not pictures or words.rng.random() < 0.8:  # else the screen is as it was
            size = words.rng.randrange(120_000, 260_000)
            data = base64.b64encode(words.rng.randbytes(size)).decode()
        source = {"type": "base64", "media_type": "image/png", "data": data}
        pictures.append(len(agent.messages))
        agent.tell(
            [
                {
                    "type": "tool_result",
                    "tool_use_id": f"toolu_{step}",
                    "content": [{"type": "image", "source": source}],
                }
            ]
        )
        if len(pictures) > 10:
            gone = {"type": "text", "text": "[screenshot removed]"}
            agent.messages[pictures.pop(0)] = _compact({"role": "user", "content": [gone]})


def short_calls(seed: int, quick: bool) -> Iterator[Passed]:
    """Calls that have nothing to do with each other, of many kinds."""
    words = Words(f"short {seed}")
    rng = words.rng
    for number in range(300 if quick else 3000):
        host, path = f"api{rng.randrange(30)}.example.com", f"/v{rng.randrange(3)}/{words.id(6)}"
        asked = json.dumps(
            {words.id(5): words.prose(rng.randrange(20, 900)) for _ in range(rng.randrange(4))}
        ).encode()
        said = json.dumps(
            {words.id(5): words.prose(rng.randrange(20, 900)) for _ in range(rng.randrange(6))}
        ).encode()
        heads = _heads(words, host, len(asked))
        yield Passed(f"short-{number // 20}", host, path, heads[0], asked, heads[1], said)


def clock_run(seed: int, quick: bool) -> Iterator[Passed]:
    """The long run with a clock in its system prompt, which stands first."""
    return long_run(seed, quick, clock=True)


MADE: dict[str, Callable[[int, bool], Iterator[Passed]]] = {
    "long run": long_run,
    "clock": clock_run,
    "tickets": tickets,
    "repair runs": repairs,
    "four agents": lanes,
    "screenshots": screenshots,
    "short calls": short_calls,
}
