"""What it costs to look for secrets: megabytes a second, bodies of 60 KB, teaching a secret, hostile texts of one megabyte.

Measured on the redactor alone, by CPU of the thread that asks, best of several times; 0, 40 and 512 secrets have been learned and
compiled. Bodies of 60 KB: a chat, 30 requests of a conversation (each goes on where the one before ended), source code, random bytes, base64, streams of events
of OpenAI's chat and of its responses, and the sample traffic where it is there.
"""

import base64
import json
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random

import workloads
from corpora import samples
from measure import Plan
from report import Bar, Section

from playhead.tape.redaction.redactor import Redactor
from playhead.tape.redaction.search import Kind

LEARNED = (0, 40, 512)
BAR_MB_S = {
    "chat": 1000,
    "conversation": 1000,
    "source": 1000,
    "random": 1000,
    "base64": 1000,
    "events": 500,
    "responses": 500,
    "traffic": 500,
}
BAR_60_KB_US = 60.0
BAR_TEACH_US = 100.0
BAR_HOSTILE_S = 0.1
_SIZE = 60_000
_TIMES = 50
_STREAMS = ("events", "responses")
_BODIES = 16
"""Different bodies of a kind; an engine that has seen one is no measure."""


def redact(plan: Plan) -> list[Section]:
    """Measure the search of bodies."""
    with ThreadPoolExecutor(1) as later:
        return [_speed(plan, later), _teaching(plan, later), _hostile(later)]


def _speed(plan: Plan, later: ThreadPoolExecutor) -> Section:
    section = Section(
        "Looking for secrets, MB/s, and microseconds for 60 KB",
        ("body", *(f"{count} learned" for count in LEARNED), "60 KB, us"),
    )
    redactors = {count: _knowing(count, later) for count in LEARNED}
    raw: dict[str, dict[int, float]] = {}
    for name, bodies in _bodies().items():
        if not bodies:
            section.notes.append(f"{name}: skipped: no corpus")
            continue
        size = sum(map(len, bodies))
        kind = Kind(stream=name in _STREAMS)
        took_s = {
            count: _best(
                max(5, plan.rounds),
                partial(_search_all, redactor, bodies, kind, goes_on=name == "conversation"),
            )
            for count, redactor in redactors.items()
        }
        speed = {count: size / took / 1e6 for count, took in took_s.items()}
        each_us = max(took_s.values()) / size * _SIZE * 1e6
        raw[name] = speed
        section.rows.append((name, *(f"{speed[n]:.0f}" for n in LEARNED), f"{each_us:.0f}"))
        worst = min(speed.values())
        section.bars.append(Bar(f"search of {name}", BAR_MB_S[name], worst, "MB/s", least=True))
        if name not in (*_STREAMS, "traffic"):
            section.bars.append(Bar(f"60 KB of {name}", BAR_60_KB_US, each_us, "us"))
    section.raw = raw
    return section


def _search_all(redactor: Redactor, bodies: list[bytes], kind: Kind, *, goes_on: bool) -> None:
    for body in bodies:
        redactor._search.search(body, kind, goes_on=goes_on)


def _bodies() -> dict[str, list[bytes]]:
    """Give bodies by their kind."""
    rng = Random(3)
    modules = b"\n".join(_sources())
    source = [modules[at * _SIZE : (at + 1) * _SIZE] for at in range(_BODIES)]
    chat = [
        json.dumps({"messages": [{"role": "user", "content": text.decode("latin-1")}]}).encode()
        for text in source
    ]
    chat += [workloads.body(workloads.WORKLOADS["llm"], at)[:_SIZE] for at in range(1, _BODIES)]
    drawn = [rng.randbytes(_SIZE) for _ in range(_BODIES)]
    words = modules.decode("latin-1").split(" ")
    events = [
        "".join(
            f"data: {json.dumps(_event(word, at))}\n\n" for word in words[at * 300 : (at + 1) * 300]
        ).encode()
        for at in range(_BODIES)
    ]
    responses = [
        "".join(
            f"event: {_RESPONSE}\ndata: {json.dumps(_response(word, number, at))}\n\n"
            for number, word in enumerate(words[at * 250 : (at + 1) * 250])
        ).encode()
        for at in range(_BODIES)
    ]
    traffic = [body for one in samples() for body in (one.asked, one.said) if body]
    return {
        "chat": chat,
        "conversation": [_conversation(source[0], step) for step in range(30)],
        "source": source,
        "random": drawn,
        "base64": [base64.b64encode(one)[:_SIZE] for one in drawn],
        "events": events,
        "responses": responses,
        "traffic": traffic,
    }


def _conversation(text: bytes, step: int) -> bytes:
    """Give the request of a step of a conversation: one message more than the one before."""
    size = 2000
    said = [text[at * size : (at + 1) * size].decode("latin-1") for at in range(len(text) // size)]
    messages = [{"role": "user", "content": one} for one in (said * 2)[: 16 + step]]
    return json.dumps({"model": "bench-1", "messages": messages}).encode()


def _event(word: str, answer: int) -> dict[str, object]:
    """Give an event as OpenAI's chat sends one for each token; each answer has an id of its own."""
    choice = {"index": 0, "delta": {"content": word + " "}, "logprobs": None, "finish_reason": None}
    told = {
        "id": f"chatcmpl-Bq{answer:02}",
        "object": "chat.completion.chunk",
        "created": 1767225600,
    }
    return {**told, "model": "gpt-4o-2024-08-06", "service_tier": "default", "choices": [choice]}


_RESPONSE = "response.output_text.delta"


def _response(word: str, number: int, answer: int) -> dict[str, object]:
    """Give an event as OpenAI's responses have one for each token: a number and two strings differ."""
    told = {"type": _RESPONSE, "sequence_number": number, "item_id": f"msg_68aef0{answer:02}"}
    place = {"output_index": 0, "content_index": 0, "delta": word + " ", "logprobs": []}
    return {**told, **place, "obfuscation": "x7Kq2mWp9Za"[: number % 11 + 1]}


def _sources() -> Iterator[bytes]:
    """Give modules of the standard library, as much as is needed."""
    size = 0
    for file in sorted(Path(json.__file__).parent.parent.glob("*.py")):
        text = file.read_bytes()
        size += len(text)
        yield text
        if size > _BODIES * _SIZE * 2:
            return


def _knowing(count: int, later: ThreadPoolExecutor) -> Redactor:
    """Give a redactor that has learned secrets, with all of them compiled."""
    redactor = Redactor(b"k" * 32, later=later.submit)
    for value in _values(count):
        redactor._learned.add(value)
    later.submit(len, ()).result()
    return redactor


def _values(count: int, seed: int = 1) -> list[bytes]:
    rng = Random(seed)
    return [base64.b64encode(rng.randbytes(24)) for _ in range(count)]


def _teaching(plan: Plan, later: ThreadPoolExecutor) -> Section:
    """Measure what an answer that teaches a secret costs more than one that has a secret that is known."""
    section = Section("An answer that teaches a secret", ("answer", "median us"))
    redactor = _knowing(40, later)

    def answer(value: bytes) -> bytes:
        return b'{"access_token": "' + value + b'", "expires_in": 3600}'

    new_us, known_us = [], []
    for value in _values(20 * max(5, plan.rounds), seed=2):
        body = answer(value)
        for times in (new_us, known_us):
            began = time.thread_time()
            redactor._search.search(body)
            times.append((time.thread_time() - began) * 1e6)
    new, known = statistics.median(new_us), statistics.median(known_us)
    section.rows += [("teaches one", f"{new:.0f}"), ("has one that is known", f"{known:.0f}")]
    section.bars.append(
        Bar("an answer that teaches a secret", BAR_TEACH_US, new - known, "us more")
    )
    section.raw = {"new": new_us, "known": known_us}
    return section


def _hostile(later: ThreadPoolExecutor) -> Section:
    """Measure the texts of secrets_hostile.yaml."""
    section = Section("Hostile texts of one megabyte", ("text", "s"))
    try:
        from playhead.tests.adversary.secret_search import hostile_times
    except ImportError:
        section.notes.append("skipped: no tests beside the package")
        return section
    took = dict(hostile_times(None, [], later))
    worst = sorted(took.items(), key=lambda one: -one[1])[:8]
    section.rows += [(name, f"{seconds:.3f}") for name, seconds in worst]
    over = sum(1 for seconds in took.values() if seconds > BAR_HOSTILE_S)
    section.notes.append(f"{len(took) - over} of {len(took)} within {BAR_HOSTILE_S} s")
    section.bars.append(Bar("1 MB of the worst hostile text", BAR_HOSTILE_S, worst[0][1], "s"))
    section.raw = took
    return section


def _best(rounds: int, work: Callable[[], object]) -> float:
    """Give the least CPU seconds of some work."""
    times = []
    for _ in range(rounds):
        began = time.thread_time()
        work()
        times.append(time.thread_time() - began)
    return min(times)


def took_us(work: Callable[[], object]) -> float:
    """Give how long some work takes, in microseconds: the mean of many times."""
    began = time.perf_counter()
    for _ in range(_TIMES):
        work()
    return (time.perf_counter() - began) / _TIMES * 1e6
