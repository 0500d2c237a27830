"""Small tapes of agents that are hard to tell apart: the same first request, prompts that differ by a word, a context that was made anew.

Written from the documents, as those of `agent_tapes`.
"""

from collections.abc import Callable

from playhead.tape.exchange import Response

from .agent_tapes import Tape, call, chat, chat_answer, said

_TOOLS = ("look",)


class Talk:
    """An agent on its way, that keeps its messages."""

    def __init__(self, tape: Tape, name: str, system: str, first: str, process: int = 1) -> None:
        self.tape, self.name, self.process = tape, name, process
        self.head = said("system", system)
        self.asked = [self.head, said("user", first)]
        self.turns = 0

    def look(self, *overlaps: int) -> int:
        """Ask the model, which wants a tool called; give the seq."""
        self.turns += 1
        wants = call(f"call_{self.name}_{self.turns}", "look", q=f"{self.name}/{self.turns}")
        answer = chat_answer(
            f"step {self.turns} of {self.name}", wants, id=f"{self.name}{self.turns}"
        )
        seq = self._ask(answer, overlaps)
        self.asked.append(
            said("assistant", f"step {self.turns} of {self.name}", tool_calls=[wants])
        )
        return seq

    def found(self, text: str) -> None:
        """Take what the tool has found."""
        id = f"call_{self.name}_{self.turns}"
        self.asked.append(said("tool", text, tool_call_id=id))

    def look_counted(self, case: int) -> int:
        """Ask the model, which wants a tool called; its id is that of all others."""
        wants = call("call_0", "weigh", case=case * 100 + 2)
        seq = self._ask(chat_answer("", wants, id=f"{self.name}{case}"), ())
        self.asked.append(said("assistant", None, tool_calls=[wants]))
        return seq

    def found_counted(self, text: str) -> None:
        """Take what that tool has found."""
        self.asked.append(said("tool", text, tool_call_id="call_0"))

    def say(self, text: str, then: str = "Go on.") -> int:
        """Ask the model, which answers in words; give the seq."""
        self.turns += 1
        seq = self._ask(chat_answer(text, id=f"{self.name}{self.turns}"), ())
        self.asked += [said("assistant", text), said("user", then)]
        return seq

    def _ask(self, answer: Response, overlaps: tuple[int, ...]) -> int:
        return self.tape.model(
            chat(self.asked, tools=_TOOLS),
            answer,
            process=self.process,
            overlaps=overlaps,
        )


def same_task(processes: tuple[int, int] = (1, 2)) -> Tape:
    """Two agents with the same first request, other answers and other ids; the second begins before the first goes on."""
    tape = Tape("same task" if processes == (1, 2) else "same task in one process")
    one, two = (
        Talk(tape, name, "You are a worker.", "Same task for all.", process)
        for name, process in zip(("ib", "ia"), processes, strict=True)
    )
    one.look()
    two.look()
    for agent in (one, two, one, two):
        agent.found(f"it is {agent.turns}")
        agent.look()
    tape.lanes = [[1, 3, 5], [2, 4, 6]]
    tape.edges = ["1 -> 3 recorded", "2 -> 4 recorded", "3 -> 5 recorded", "4 -> 6 recorded"]
    tape.lost = {seq: [] for seq in range(1, 7)}
    return tape


def same_task_in_one_process() -> Tape:
    """The same in one process: that the second is no repetition of the first is known once each has gone on."""
    return same_task((1, 1))


def later_first() -> Tape:
    """The same in one process, where the second goes on before the first does."""
    tape = Tape("the later one goes on first")
    one, two = (Talk(tape, name, "You are a worker.", "Same task for all.") for name in ("a", "b"))
    one.look()
    two.look()
    for agent in (two, two, one, two, one):
        agent.found(f"it is {agent.turns}")
        agent.look()
    tape.lanes = [[1, 5, 7], [2, 3, 4, 6]]
    tape.lost = {seq: [] for seq in range(1, 8)}
    return tape


def begun_late() -> Tape:
    """A second process begins with the first request of one that is well on its way."""
    tape = Tape("begun late")
    one = Talk(tape, "a", "You are a worker.", "Same task for all.")
    one.look()
    one.found("it is 1")
    one.look()
    two = Talk(tape, "b", "You are a worker.", "Same task for all.", 2)
    two.look()
    for agent in (one, two):
        agent.found("it is 2")
        agent.look()
    tape.lanes = [[1, 2, 4], [3, 5]]
    tape.lost = {seq: [] for seq in range(1, 6)}
    return tape


def sampled() -> Tape:
    """One agent asks the same three times, and goes on with the first answer: one lane."""
    tape = Tape("sampled")
    agent = Talk(tape, "a", "You are a writer.", "Write a line.")
    first = agent.asked
    for text in ("The first of three lines.", "The second of three lines.", "The third of three."):
        agent.asked = list(first)
        agent.say(text)
    agent.asked = [
        *first,
        said("assistant", "The first of three lines."),
        said("user", "That one. Another."),
    ]
    agent.say("One line more.")
    tape.lanes = [[1, 2, 3, 4]]
    tape.edges = ["1 -> 4 recorded", "1 -> 2 inferred", "2 -> 3 inferred"]
    return tape


def two_chats() -> Tape:
    """A server that answers two people by turns, with one prompt."""
    tape = Tape("two chats")
    one = Talk(tape, "a", "You are a helpful shop.", "Do you have apples?")
    two = Talk(tape, "b", "You are a helpful shop.", "Do you have engines?")
    one.say("We have apples, red ones.")
    two.say("We have engines, small ones.")
    one.say("Two euros each.")
    two.say("Two thousand euros each.")
    tape.lanes = [[1, 3], [2, 4]]
    tape.lost = {seq: [] for seq in range(1, 5)}
    return tape


def numbered() -> Tape:
    """Agents whose prompts differ by a number."""
    return _by_turns("numbered", "You are worker 1.", "You are worker 2.")


def one_word_more() -> Tape:
    """Agents whose prompts differ by a short word."""
    return _by_turns("one word more", "You are cut.", "You are cut too.")


def _by_turns(name: str, *prompts: str) -> Tape:
    tape = Tape(name)
    agents = [
        Talk(tape, f"a{at}", prompt, f"Question {at}: what about {word}?")
        for at, (prompt, word) in enumerate(zip(prompts, ("apples", "engines"), strict=True))
    ]
    for text in ("Answer", "More"):
        for agent in agents:
            agent.say(f"{text} {agent.name}")
    tape.lanes = [[1, 3], [2, 4]]
    tape.lost = {seq: [] for seq in range(1, 5)}
    return tape


def numbered_once() -> Tape:
    """The same with the same question, and one call each: nothing was dropped."""
    tape = Tape("numbered, one call each")
    for number in (1, 2, 3):
        Talk(tape, f"a{number}", f"You are worker {number}.", "What is new?").say("Nothing is.")
    tape.lanes = [[1], [2], [3]]
    tape.lost = {1: [], 2: [], 3: []}
    return tape


def dated() -> Tape:
    """A prompt with the time in it, by an agent that makes its context anew: one lane."""
    tape = Tape("dated")
    prompts = [
        f"You are a clerk. It is {day}, {date}, {time}."
        for day, date, time in (
            ("Monday", "September 21, 2026", "14:59:58"),
            ("Tuesday", "September 22, 2026", "00:01"),
        )
    ]
    agent = Talk(tape, "a", prompts[0], "Look up order 5512 for Ana Lindqvist.")
    agent.say("It is of 777123.")
    agent.asked = [
        said("system", prompts[1]),
        said("user", "Summary: the order was looked up. Go on."),
    ]
    agent.say("Done with it.")
    tape.lanes = [[1, 2]]
    tape.edges = ["1 -> 2 inferred"]
    tape.lost = {2: ["1 user: Look up order 5512 for Ana Lindqvist."]}
    return tape


_RULES = " ".join(f"Rule {at}: be careful with item number {at * 7}." for at in range(60))


def _chat(tape: Tape, prompts: tuple[str, ...], tools: tuple[str, ...], first: str) -> None:
    """Write a conversation in which each turn has another system prompt."""
    asked = [said("user", first)]
    for at, prompt in enumerate(prompts, 1):
        text = f"The answer to question {at} of {first!r} is unmistakable."
        tape.model(
            chat([said("system", prompt), *asked], tools=tools),
            chat_answer(text, id=f"{first}{at}"),
        )
        asked += [said("assistant", text), said("user", f"And what about clause {at} of it?")]


def looked_up(prompts: tuple[str, ...], name: str, tools: tuple[str, ...] = ()) -> Tape:
    """A chat whose system prompt has what was looked up for the question: it is another one each turn, and one agent."""
    tape = Tape(f"looked up, {name}")
    _chat(tape, prompts, tools, "Please explain the contract.")
    tape.lanes = [[1, 2, 3]]
    tape.edges = ["1 -> 2 recorded", "2 -> 3 recorded"]
    return tape


_FOUND = tuple(
    " ".join(f"{word} {at * 31 % 997}{word[::-1]} lies beside number {at}." for at in range(40))
    for word in ("north", "harbour", "winter")
)


def looked_up_first() -> Tape:
    """What was looked up is at the beginning, before the rules."""
    prompts = tuple(f"Context {at}: {word * 50}\n{_RULES}" for at, word in enumerate("abc"))
    return looked_up(prompts, "at the beginning")


def looked_up_with_tools() -> Tape:
    """The same with tools that were not called."""
    prompts = tuple(f"Context {at}: {word * 50}\n{_RULES}" for at, word in enumerate("abc"))
    return looked_up(prompts, "with tools", _TOOLS)


def looked_up_all() -> Tape:
    """The prompt is nearly all of it what was looked up."""
    prompts = tuple(f"You are a clerk. Answer from this:\n{found}" for found in _FOUND)
    return looked_up(prompts, "nearly all of it")


def looked_up_short() -> Tape:
    """The prompt is short, and a word of it is another one."""
    prompts = tuple(f"You are a clerk. The mood is {word}." for word in ("good", "bad", "so so"))
    return looked_up(prompts, "short")


def looked_up_twice() -> Tape:
    """Two such chats by turns, with one first question and other answers: two agents."""
    tape = Tape("looked up, two by turns")
    agents = [Talk(tape, name, "?", "What is new in the shop?") for name in ("a", "b")]
    for turn, found in enumerate(_FOUND):
        for agent in agents:
            prompt = f"You are a clerk. Answer from this:\n{found} {agent.name}{turn}"
            agent.asked[0] = said("system", prompt)
            agent.say(f"Answer {turn} of the clerk {agent.name}.", "And what else is there?")
    tape.lanes = [[1, 3, 5], [2, 4, 6]]
    return tape


def handed_to_another_role() -> Tape:
    """A conversation of a person that is given to another role at each turn, with rules that all share: two agents."""
    prompts = tuple(f"You are the {role} desk.\n{_RULES}" for role in ("refund", "shipping"))
    tape = Tape("handed to another role")
    _chat(tape, (prompts[0], prompts[1], prompts[0]), (), "Please explain the contract.")
    tape.lanes = [[1, 3], [2]]
    return tape


def counted_ids() -> Tape:
    """Two agents by turns whose server counts its tool calls anew in each answer: each has a `call_0` of its own."""
    tape = Tape("counted ids")
    one, two = (
        Talk(tape, name, "You are a worker.", f"Weigh the {word} of the shop.")
        for name, word in (("a", "pears"), ("b", "apples"))
    )
    for agent in (one, two):
        agent.look_counted(8 if agent is one else 5)
    for agent in (two, one):
        agent.found_counted("eight kilos" if agent is one else "five apples")
        agent.look_counted(9 if agent is one else 6)
    tape.get("https://shop.test/weigh?case=602", {"ok": True})
    for agent in (two, one):
        agent.found_counted(f"it is done, {agent.name}")
        agent.say(f"All of it is done by {agent.name}.")
    tape.lanes = [[1, 4, 7], [2, 3, 6]]
    return tape


def compacted_after_a_result() -> Tape:
    """An agent that compacts by itself, once a tool has given its result, without asking a model for the summary."""
    tape = Tape("compacted after a result")
    agent = Talk(tape, "a", "You are the only agent.", "First task: look up order 5512.")
    agent.look()
    tape.get("https://shop.test/a/1", {"amount": 777123})
    agent.found('{"amount": 777123}')
    agent.look()
    tape.get("https://shop.test/a/2", {"left": 3})
    agent.asked = [
        agent.head,
        said("user", "Summary: a/1 is of 777123, stock of 9 is 3. Go on with the refund."),
    ]
    agent.look()
    tape.get("https://shop.test/a/3", {"left": 4})
    agent.found('{"left": 4}')
    agent.say("Done with it.")
    tape.lanes = [[1, 3, 5, 7]]
    tape.edges = ["3 -> 5 inferred", "5 -> 7 recorded", "5 -> 6 inferred"]
    tape.lost = {
        5: [
            "1 user: First task: look up order 5512.",
            "1 assistant: step 1 of a",
            "1 tool call look",
            '3 tool result look: {"amount": 777123}',
        ],
        7: [],
    }
    return tape


def helper_with_the_same_prompt() -> Tape:
    """A sub-agent with its asker's prompt, whose first message does not have what it was asked: the asker goes on later."""
    tape = Tape("a helper with the same prompt")
    main = Talk(tape, "m", "You are one of many.", "Do all of it.")
    main.say("I begin with a part of it.")
    main.look()
    helper = Talk(tape, "h", "You are one of many.", "A part of the work, in words of my own.")
    helper.look()
    tape.get("https://shop.test/h/1", {"ok": 1})
    helper.found('{"ok": 1}')
    helper.say("The part is done.")
    main.found("The part is done.")
    main.say("All is done.")
    tape.lanes = [[1, 2, 6], [3, 5]]
    tape.edges = ["2 -> 6 recorded", "3 -> 5 recorded"]
    tape.lost = {3: [], 5: [], 6: []}
    return tape


def colleague() -> Tape:
    """A second agent with the same prompt, while the first waits for its first tool and never goes on: there was nothing to compact."""
    tape = Tape("colleague")
    one, two = (
        Talk(tape, name, "You are one of many.", f"Do the part of {name}.") for name in "ab"
    )
    one.look()
    two.look()
    two.found("it is 1")
    two.say("Done.")
    tape.lanes = [[1], [2, 3]]
    tape.lost = {2: [], 3: []}
    return tape


LANE_TAPES: tuple[Callable[[], Tape], ...] = (
    same_task,
    same_task_in_one_process,
    later_first,
    begun_late,
    sampled,
    two_chats,
    numbered,
    one_word_more,
    numbered_once,
    dated,
    looked_up_first,
    looked_up_with_tools,
    looked_up_all,
    looked_up_short,
    looked_up_twice,
    handed_to_another_role,
    counted_ids,
    compacted_after_a_result,
    helper_with_the_same_prompt,
    colleague,
)
