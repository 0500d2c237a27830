"""The double refund as a tape in a store: seven exchanges, the fourth of which paid and was given up on.

Beside it stand a run that went well, and others, so that the list of runs is a list.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from playhead.store import Store
from playhead.tape.exchange import Chunk, Exchange, Gone, RedactedText, Repeat, RepeatKind, Seq
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.agent_tapes import S, Tape, call, chat, chat_answer, said
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import make_intent, make_record
from playhead.tests.support.looking_back import write_store
from playhead.tests.support.replays import write_replay

RUN, GOOD, REPLAY = "refund", "refund-fixed", "refund@1"
REFUNDS = "http://127.0.0.1:9002/v1/refunds"
CAUSE, DUPLICATE, ASKED_FOR_IT, STEPS = 4, 6, 5, 7
"""Seqs: the refund that paid, the one that paid again, the call that wanted that, and how many there are."""
_BEGAN_NS = 1_700_000_000_000_000_000
_FORM = {"content-type": "application/x-www-form-urlencoded"}
_SYSTEM = said("system", "You are a support agent. Refund what is broken.")
_MODEL = "127.0.0.1"
_LATE_US = 8 * S // 5
"""When the answer to the first refund came: the client had left after a second."""


def refund_tape(*, is_fixed: bool = False) -> Tape:
    """Give the tape; that of the fixed agent looks before it pays again."""
    tape = Tape(RUN)
    asked = [_SYSTEM, said("user", "Order 1007 came broken: 49.00 USD, please.")]
    look, pay = call("call_1", "order", order=1007), _pay("call_2")

    def ask(wants: dict[str, Any] | None, text: str | None = None) -> int:
        request = chat(asked, tools=("order", "refund"), host=_MODEL)
        answer = chat_answer(text, *([wants] if wants else []), id=f"chatcmpl-{len(asked)}")
        return tape.model(request, answer)

    def hear(wants: dict[str, Any], result: str) -> None:
        asked.extend(
            (
                said("assistant", None, tool_calls=[wants]),
                said("tool", result, tool_call_id=wants["id"]),
            )
        )

    ask(look)
    tape.get(
        "http://127.0.0.1:9002/v1/orders/1007",
        {"order": 1007, "charge": "ch_1007", "total": "49.00"},
    )
    hear(look, '{"order": 1007, "charge": "ch_1007", "total": "49.00"}')
    ask(pay)
    _refund(tape, gone=Gone(S, 0, False), response=_late(), took_us=_LATE_US)
    hear(pay, "error: the request timed out")
    if is_fixed:
        again = call("call_3", "refunds", charge="ch_1007")
        ask(again)
        tape.get(f"{REFUNDS}?charge=ch_1007", {"refunds": [{"id": "re_1", "amount": 4900}]})
        hear(again, '{"refunds": [{"id": "re_1", "amount": 4900}]}')
    else:
        again = _pay("call_3")
        ask(again)
        _refund(tape, repeat=Repeat(Seq(CAUSE), RepeatKind.POSSIBLE_DUPLICATE, True))
        hear(again, '{"id": "re_2", "status": "succeeded"}')
    ask(None, "The 49.00 USD are on their way back to you.")
    return tape


def _pay(id: str) -> dict[str, Any]:
    return call(id, "refund", charge="ch_1007", amount=4900)


def _refund(tape: Tape, **changes: Any) -> None:
    response = changes.pop("response", _paid("re_2"))
    tape.post(REFUNDS, b"charge=ch_1007&amount=4900", response=response, **changes)
    made = tape.exchanges[-1]
    request = make_request(REFUNDS, made.request.body, _FORM)
    tape.exchanges[-1] = replace(made, request=request)


def _paid(id: str) -> Any:
    body = {"id": id, "object": "refund", "charge": "ch_1007", "amount": 4900}
    return make_response(body | {"currency": "usd", "status": "succeeded"})


def _late() -> Any:
    made = _paid("re_1")
    return replace(made, head_us=_LATE_US, chunks=(Chunk(_LATE_US, len(made.body)),))


def write_refund_store(folder: Path) -> Path:
    """Write the store; give its folder."""
    return write_store(folder, _write)


async def _write(store: Store) -> None:
    for number in range(3):
        await _record(store, f"nightly-{number}", refund_tape(is_fixed=True).exchanges, 0)
    await _record(store, GOOD, refund_tape(is_fixed=True).exchanges, 0)
    exchanges = refund_tape().exchanges
    await _record(store, RUN, exchanges, 1)
    await write_replay(store, store.runs.get(RUN), exchanges, at_ns=_BEGAN_NS + 10**12)


async def _record(store: Store, name: str, exchanges: list[Exchange], code: int) -> None:
    agent = RedactedText("python agent.py")
    run = await store.runs.create(name, mode="record", at_ns=_BEGAN_NS, agent=agent)
    for exchange in exchanges:
        store.events.append(run.number, make_intent(exchange))
        await store.exchanges.save(run.number, partial(make_record, exchange))
    end_ns = _BEGAN_NS + 60 * 10**9
    noted = {"child_exit": code, "command": ["python", "agent.py"], "contained": False}
    store.events.append(run.number, Event(EventKind.NOTED, end_ns, noted))
    await store.runs.seal(run, reason=f"the command ended with {code}", at_ns=end_ns)
    labels = {"labels": ("shop", "night"), "pinned": False, "by": "ann"}
    store.runs.mark(run, lambda _: Event(EventKind.MARKED, end_ns, labels))
