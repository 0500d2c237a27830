"""Planted runs of eight frameworks with sub-agents, as they look on the wire.

`lanes(count, seed)` gives cases `{"id", "kind", "run", "truth"}`; the truth has `calls`, one for each model call:

    "seq"       the call.
    "lane"      the name of the agent that sent it; None for what belongs to no conversation.
    "aside"     "title" or "quota" for those, else None.
    "parent"    the lane that asked for this one, or handed the conversation over to it; None for the first, and for
                agents that a program runs one after the other.
    "parents"   parents that are not wrong.

An agent that works, hands over and gets the conversation back is one lane. Names are for people: what counts is which
calls have the same one. Sources: prompts and messages of the frameworks' public code and documents; they are shortened.
"""

import json
from collections.abc import Callable
from random import Random

from .lane_scene import SEARCH, TOOLS, Scene
from .run import Agent
from .wire import Plain, result, said, tool, user


def _transfer(name: str) -> Plain:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    return {
        "name": f"transfer_to_{name}",
        "description": f"Ask agent '{name}' for help",
        "schema": schema,
    }


def langgraph(rng: Random) -> Scene:
    """A supervisor (`langgraph-supervisor`): workers get the whole conversation, and a prompt of their own."""
    scene = Scene(rng, "openai-chat")
    names = ["research_expert", "math_expert"]
    prompt = "You are a team supervisor managing a research expert and a math expert."
    boss = scene.agent("supervisor", prompt, [_transfer(one) for one in names], scene.task())
    for name in rng.sample(names, 2):
        call = boss.call(f"transfer_to_{name}", {})
        scene.turn("supervisor", boss, "", call)
        boss.messages[-1]["as"] = "supervisor"
        boss.result(call, f"Successfully transferred to {name}")
        prompt = f"You are a {name.replace('_', ' ')}. Do not do anything else."
        worker = scene.agent(name, prompt, TOOLS, "", "supervisor")
        worker.messages = [*boss.messages]
        scene.look_up(name, worker, rng.choice((1, 3)))
        scene.turn(name, worker, f"{name} has found {scene.task('that')}")
        back = boss.call("transfer_back_to_supervisor", {})
        boss.messages += [
            worker.messages[-1] | {"as": name},
            said("Transferring back to supervisor", [back]) | {"as": name},
            result(back, "Successfully transferred back to supervisor"),
        ]
    scene.turn("supervisor", boss, "Both experts agree.")
    return scene


_CREW = (
    "\nCurrent Task: {task}\n\nThis is the expected criteria for your final answer: Your best answer to your coworker "
    "asking you this, accounting for the context shared.\nyou MUST return the actual complete content as the final "
    "answer, not a summary.\n\nThis is the context you're working with:\n{context}\n\nBegin! This is VERY important to you, "
    "use the tools available and give your best Final Answer, your job depends on it!\n\nThought:"
)


def crewai(rng: Random) -> Scene:
    """A manager that delegates, with native tool calls or in words; or agents one after the other."""
    scene = Scene(rng, "openai-chat")
    shape = rng.choice(("native", "words", "sequential"))
    if shape == "sequential":
        context = ""
        for number, role in enumerate(("Researcher", "Writer")):
            prompt = f"You are {role}. You know your trade.\nYour personal goal is: {role} well"
            first = _CREW.format(task=scene.task(), context=context or "nothing")
            before = ("Researcher",) if number else ()
            agent = scene.agent(role, prompt, TOOLS, first, None, *before)
            scene.look_up(role, agent)
            context = f"Final Answer: {scene.task(role)}"
            scene.turn(role, agent, context)
        return scene
    delegate = tool("delegate_work_to_coworker", "task", "context", "coworker")
    prompt = "You are Crew Manager. You manage your team to get the best work out of them."
    boss = scene.agent("manager", prompt, [delegate] if shape == "native" else [], scene.task())
    for role in ("Researcher", "Writer"):
        given = {"task": scene.task(role), "context": scene.task("Know"), "coworker": role}
        call = boss.call("delegate_work_to_coworker", given)
        acted = f"Thought: I delegate.\nAction: Delegate work to coworker\nAction Input: {json.dumps(given)}"
        if shape == "native":
            scene.turn("manager", boss, "", call)
        else:
            scene.turn("manager", boss, acted)
        prompt = f"You are {role}. You know your trade.\nYour personal goal is: {role} well"
        worker = scene.agent(role, prompt, TOOLS, _CREW.format(**given), "manager")
        scene.look_up(role, worker)
        answer = f"It is as {role} says: {scene.task('that')}"
        scene.turn(role, worker, f"Thought: I now can give a great answer\nFinal Answer: {answer}")
        if shape == "native":
            boss.result(call, answer)
        else:
            boss.messages[-1]["text"] += f"\nObservation: {answer}"
    scene.turn("manager", boss, "Thought: I know it.\nFinal Answer: done")
    return scene


def autogen(rng: Random) -> Scene:
    """Agents as tools, two at once; or a group chat in which each sees what the others said."""
    scene = Scene(rng, "openai-chat")
    if rng.random() < 0.4:
        task, spoken = scene.task(), []
        prompts = {
            "writer": "You write short texts.",
            "critic": "You judge texts. Say APPROVE when it is good.",
        }
        group = {
            name: scene.agent(name, prompt, (), task, None, *prompts)
            for name, prompt in prompts.items()
        }
        for number in range(2):
            for name, agent in group.items():
                text = f"{name} {number}: {scene.task('I say')}"
                scene.turn(name, agent, text)
                spoken.append(text)
                for other, heard in group.items():
                    if other != name:
                        heard.messages.append(user(text) | {"as": name})
        return scene
    names = ["web_expert", "math_expert"]
    boss = scene.agent(
        "assistant",
        "You are a general assistant. Use expert tools.",
        [tool(one, "task") for one in names],
        scene.task(),
    )
    calls = [boss.call(name, {"task": scene.task(name)}) for name in names]
    scene.turn("assistant", boss, "", *calls)
    workers = []
    for name, call in zip(names, calls, strict=True):
        task = call["arguments"]["task"]
        agent = scene.agent(name, f"You are a {name}.", TOOLS, task, "assistant")
        agent.messages[0]["as"] = "user"
        workers.append(scene.sub(name, agent, f"{name} found {call['id']}"))
    scene.together(workers)
    for name, call in zip(names, calls, strict=True):
        boss.result(call, f"{name}: {name} found {call['id']}")
    scene.turn("assistant", boss, "Done.")
    return scene


def openai_agents(rng: Random) -> Scene:
    """A handoff: the next agent gets the whole conversation, with other instructions and tools; it may be given back."""
    scene = Scene(rng, "openai-responses")
    triage = scene.agent(
        "triage",
        "You route customers.",
        [_transfer("refund_agent")],
        scene.task("I want a refund for"),
    )
    call = triage.call("transfer_to_refund_agent", {})
    scene.turn("triage", triage, "", call)
    triage.result(call, json.dumps({"assistant": "Refund Agent"}))
    refund = scene.agent(
        "refund",
        "You refund. Handoff context follows.",
        [*TOOLS, _transfer("triage_agent")],
        "",
        "triage",
    )
    refund.messages = triage.messages
    scene.look_up("refund", refund, rng.choice((1, 3)))
    scene.turn("refund", refund, "You get 12 EUR back.")
    refund.hear("Thanks, and my other order?")
    if rng.random() < 0.5:
        call = refund.call("transfer_to_triage_agent", {})
        scene.turn("refund", refund, "", call)
        refund.result(call, json.dumps({"assistant": "Triage Agent"}))
        scene.turn("triage", triage, "Which one do you mean?")
    else:
        scene.look_up("refund", refund)
        scene.turn("refund", refund, "That one is on its way.")
    return scene


def pydantic_ai(rng: Random) -> Scene:
    """Delegation: a tool of one agent runs another, with a prompt that the tool makes up around its arguments."""
    scene = Scene(rng, rng.choice(("openai-chat", "anthropic", "gemini")))
    main = scene.agent(
        "main",
        "Use the `joke_factory` to get jokes, then choose.",
        [tool("joke_factory", "subject")],
        scene.task("Tell jokes"),
    )
    count = rng.choice((1, 1, 2))
    calls = [main.call("joke_factory", {"subject": scene.task("Jokes")}) for _ in range(count)]
    scene.turn("main", main, "", *calls)
    workers = []
    for number, call in enumerate(calls):
        first = f"Please generate 5 jokes on this: {call['arguments']['subject']}"
        lane = f"factory {number}"
        agent = scene.agent(lane, "You write jokes.", TOOLS, first, "main")
        workers.append(scene.sub(lane, agent, json.dumps({"jokes": [f"Knock knock {call['id']}"]})))
    scene.together(workers)
    for call in calls:
        main.result(call, {"jokes": [f"Knock knock {call['id']}"]})
    scene.turn("main", main, "The first one.")
    return scene


class _InParts(Agent):
    """Writes texts as lists of parts, as smolagents does."""

    def body(self) -> Plain:
        body = super().body()
        for message in body["messages"]:
            if isinstance(message["content"], str):
                message["content"] = [{"type": "text", "text": message["content"]}]
        return body


def smolagents(rng: Random) -> Scene:
    """Managed agents, called in code or as tools; calls and results stand in the conversation as texts."""
    scene = Scene(rng, "openai-chat")
    in_code, names = rng.random() < 0.5, ["web_agent", "data_agent"]

    def agent(lane: str, prompt: str, tools: tuple[Plain, ...], first: str, *parents: str) -> Agent:
        scene.parents[lane] = [*parents] or [None]
        return _InParts(scene.run, "openai-chat", prompt, tools, streams=scene.streams, first=first)

    prompt = "You are an expert assistant who can solve any task."
    managed = tuple(tool(one, "task", "additional_args") for one in names)
    boss = agent("manager", prompt, () if in_code else managed, f"New task:\n{scene.task()}")
    tasks = {name: scene.task(name) for name in names}
    calls = [boss.call(name, {"task": task, "additional_args": {}}) for name, task in tasks.items()]
    if in_code:
        code = "\n".join(f"print({name}(task={task!r}))" for name, task in tasks.items())
        scene.turn("manager", boss, f"Thought: I ask my team.\n<code>\n{code}\n</code>")
    else:
        scene.turn("manager", boss, "", *calls)
        written = [
            {
                "id": one["id"],
                "type": "function",
                "function": {"name": one["name"], "arguments": one["arguments"]},
            }
            for one in calls
        ]
        boss.messages[-1] = said(f"Calling tools:\n{written}")
    workers, lines = [], []
    for name, task in tasks.items():
        first = (
            f"New task:\nYou're a helpful agent named '{name}'.\nYou have been submitted this task by your manager.\n---\n"
            f"Task:\n{task}\n---\nYou're helping your manager solve a wider task."
        )
        worker = agent(name, f"{prompt} Act as {name}.", TOOLS, first, "manager")
        text = f"### 1. Task outcome (short version):\n{name} ok {rng.randrange(10_000)}"
        workers.append(scene.sub(name, worker, text))
        lines.append(f"Here is the final answer from your managed agent '{name}':\n{text}")
    if in_code:
        for one in workers:
            scene.together([one])
    else:
        scene.together(workers)
    boss.hear("Observation:\n" + "\n".join(lines))
    scene.turn("manager", boss, "Final answer: all done")
    return scene


def llamaindex(rng: Random) -> Scene:
    """An agent workflow: `handoff` names the next agent, which goes on in the shared memory."""
    scene = Scene(rng, "openai-chat")
    handoff = tool("handoff", "to_agent", "reason")
    names = ("ResearchAgent", "WriteAgent", "ReviewAgent")
    memory: list[Plain] = [user(scene.task())]
    for number, name in enumerate(names):
        tools = [handoff] if number else [handoff, SEARCH]
        before = (names[number - 1],) if number else ()
        agent = scene.agent(
            name, f"You are the {name}. Hand off when you are done.", tools, "", *before
        )
        agent.messages = memory
        if not number:
            scene.look_up(name, agent)
        if number == 2:
            scene.turn(name, agent, "The report is good.")
            continue
        given = {"to_agent": names[number + 1], "reason": scene.task("Because of")}
        call = agent.call("handoff", given)
        scene.turn(name, agent, "", call)
        agent.result(
            call,
            f"Agent {given['to_agent']} is now handling the request due to the following reason: {given['reason']}.\n"
            "Please continue with the current request.",
        )
    return scene


_SYSTEM = "You are Claude Code, Anthropic's official CLI for Claude."


def claude_code(rng: Random) -> Scene:
    """The Task tool: sub-agents at the same time, with the same prompt and tools; calls beside the conversation."""
    scene = Scene(rng, "anthropic")
    task = scene.task("Fix")
    for aside, first in (("quota", "quota"), ("title", f"<session>\n{task}\n</session>")):
        prompt = (
            ""
            if aside == "quota"
            else "Summarize this coding session in under 50 characters. Return JSON."
        )
        other = Agent(
            scene.run, "anthropic", prompt, model="claude-haiku-4-5-20251001", first=first
        )
        text = "I" if aside == "quota" else '{"title": "Fix it"}'
        scene.note(other.turn(text, counts={"input": 9, "output": 1}), None, aside)
        if aside == "quota":
            sent = scene.run[1]["request"]
            sent["max_tokens"] = 1
            for key in ("system", "tools"):
                del sent[key]
    tools = [
        tool("Task", "description", "prompt", "subagent_type"),
        tool("Bash", "command"),
        SEARCH,
    ]
    main = scene.agent(
        "main", _SYSTEM, tools, f"<system-reminder>\nToday is Monday.\n</system-reminder>\n{task}"
    )
    scene.look_up("main", main)
    calls = [
        main.call(
            "Task",
            {
                "description": "Look around",
                "prompt": scene.task("Search"),
                "subagent_type": "Explore",
            },
        )
        for _ in range(rng.randint(2, 3))
    ]
    scene.turn("main", main, "I send out agents.", *calls)
    workers = []
    for number, call in enumerate(calls):
        first = f"<system-reminder>\nToday is Monday.\n</system-reminder>\n{call['arguments']['prompt']}"
        lane = f"task {number}"
        agent = scene.agent(
            lane, f"{_SYSTEM}\nYou are a file search specialist.", TOOLS, first, "main"
        )
        workers.append(scene.sub(lane, agent, f"Found in {call['id']}.py", rng.randint(1, 3)))
    scene.together(workers)
    for call in calls:
        main.result(call, f"Found in {call['id']}.py")
    scene.look_up("main", main)
    scene.turn("main", main, "Fixed.")
    return scene


FRAMEWORKS: tuple[Callable[[Random], Scene], ...] = (
    *(langgraph, crewai, autogen, openai_agents),
    *(pydantic_ai, smolagents, llamaindex, claude_code),
)


def lanes(count: int = 40, seed: int = 22) -> list[Plain]:
    """Give runs of the eight frameworks by turns."""
    cases = []
    for index in range(count):
        play = FRAMEWORKS[index % len(FRAMEWORKS)]
        scene = play(Random(f"lanes {seed} {index}"))
        calls = sorted(scene.calls, key=lambda call: int(call["seq"]))
        cases.append(
            {
                "id": f"lanes-{index:03}",
                "kind": play.__name__,
                "run": scene.run.exchanges,
                "truth": {"calls": calls},
            }
        )
    return cases
