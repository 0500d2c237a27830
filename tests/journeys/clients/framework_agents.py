"""An agent with parallel tools for each framework: `framework_agents NAME BASE`.

The framework is imported once; for each line on stdin the agent runs in a process of its own, whose exit code is said. Every tool asks
what it is to do, does it, and takes as long as it happens to.
"""

import asyncio
import os
import random
import sys
import time
import urllib.request
from collections.abc import Callable
from typing import Any

BASE = sys.argv[2] if len(sys.argv) > 2 else ""
MODEL, KEY, SAID = "gpt-4o", "sk-not-a-real-key-123", "refund all of them"
os.environ.update(
    OPENAI_API_KEY=KEY,
    OPENAI_BASE_URL=f"{BASE}/v1",
    OPENAI_AGENTS_DISABLE_TRACING="1",
    HAYSTACK_TELEMETRY_ENABLED="False",
    AGNO_TELEMETRY="false",
)
Agent = Callable[[], object]


def refund(number: int) -> str:
    """Refund a charge.

    Args:
        number: Of the charge.
    """
    _wait()
    with urllib.request.urlopen(f"{BASE}/charges/{number}") as answer:
        text = answer.read().decode()
    _wait()
    with urllib.request.urlopen(f"{BASE}/refunds", f"charge={text}".encode()) as answer:
        told: str = answer.read().decode()
    return told


async def refund_async(number: int) -> str:
    """Refund a charge.

    Args:
        number: Of the charge.
    """
    return await asyncio.to_thread(refund, number)


refund_async.__name__ = "refund"


def _wait() -> None:
    time.sleep(random.random() / 50)


def use_threads() -> Agent:
    """No framework: the OpenAI SDK and a pool of threads."""
    import json
    from concurrent.futures import ThreadPoolExecutor

    from openai import OpenAI

    schema = {"type": "object", "properties": {"number": {"type": "integer"}}}
    tools: Any = [{"type": "function", "function": {"name": "refund", "parameters": schema}}]

    def run() -> None:
        messages: Any = [{"role": "user", "content": SAID}]
        with OpenAI() as client, ThreadPoolExecutor(8) as pool:
            while True:
                asked: Any = {"model": MODEL, "messages": messages, "tools": tools}
                said: Any = client.chat.completions.create(**asked).choices[0].message
                if not said.tool_calls:
                    return
                messages.append(said.to_dict())
                numbers = [json.loads(one.function.arguments)["number"] for one in said.tool_calls]
                for call, told in zip(said.tool_calls, pool.map(refund, numbers), strict=True):
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": told})

    return run


def use_agno() -> Agent:
    from agno.agent import Agent as Agno
    from agno.models.openai import OpenAIChat

    agent = Agno(model=OpenAIChat(id=MODEL), tools=[refund_async], telemetry=False)
    return lambda: asyncio.run(agent.arun(SAID))


def use_autogen() -> Agent:
    from autogen_agentchat.agents import AssistantAgent
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    async def run() -> None:
        client = OpenAIChatCompletionClient(model=MODEL)
        tools: Any = [refund_async]
        agent = AssistantAgent("a", client, tools=tools, max_tool_iterations=9)
        await agent.run(task=SAID)
        await client.close()

    return lambda: asyncio.run(run())


def use_haystack() -> Agent:
    from haystack.components.agents import Agent as Haystack
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.tools import create_tool_from_function

    def run() -> None:
        tools: Any = [create_tool_from_function(refund)]
        agent = Haystack(chat_generator=OpenAIChatGenerator(model=MODEL), tools=tools)
        agent.run(messages=[ChatMessage.from_user(SAID)])

    return run


def use_langgraph() -> Agent:
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import create_react_agent

    def run() -> None:
        agent = create_react_agent(ChatOpenAI(model=MODEL), [tool(refund)])
        agent.invoke({"messages": [("user", SAID)]})

    return run


def use_llama_index() -> Agent:
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.llms.openai import OpenAI

    async def run() -> None:
        await FunctionAgent(tools=[refund_async], llm=OpenAI(MODEL, api_base=f"{BASE}/v1")).run(
            SAID
        )

    return lambda: asyncio.run(run())


def use_openai_agents() -> Agent:
    from agents import Agent as OpenAIAgent
    from agents import Runner, function_tool, set_default_openai_api

    set_default_openai_api("chat_completions")
    tools: Any = [function_tool(refund_async)]
    return lambda: Runner.run_sync(OpenAIAgent(name="a", model=MODEL, tools=tools), SAID)


def use_pydantic_ai() -> Agent:
    from pydantic_ai import Agent as PydanticAgent
    from pydantic_ai.models.openai import OpenAIChatModel

    return lambda: PydanticAgent(OpenAIChatModel(MODEL), tools=[refund]).run_sync(SAID)


def use_smolagents() -> Agent:
    from smolagents import OpenAIModel, ToolCallingAgent, tool

    def run() -> None:
        model = OpenAIModel(model_id=MODEL, api_base=f"{BASE}/v1", api_key=KEY)
        ToolCallingAgent(tools=[tool(refund)], model=model, verbosity_level=0).run(SAID)

    return run


def use_strands() -> Agent:
    from strands import Agent as Strands
    from strands import tool
    from strands.models.openai import OpenAIModel

    def run() -> None:
        model = OpenAIModel(model_id=MODEL, client_args={"base_url": f"{BASE}/v1", "api_key": KEY})
        Strands(model=model, tools=[tool(refund)], callback_handler=None)(SAID)

    return run


FRAMEWORKS = {
    name.removeprefix("use_"): use for name, use in globals().items() if name.startswith("use_")
}


def _apart(agent: Agent) -> int:
    """Run an agent in a process of its own; give its exit code."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    random.seed()
    try:
        agent()
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    made = FRAMEWORKS[sys.argv[1]]()
    for _ in sys.stdin:
        print(_apart(made), flush=True)
