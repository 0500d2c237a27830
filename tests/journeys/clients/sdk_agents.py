"""Tasks of what stands on top of the SDKs: `sdk_agents NAME`. Says nothing, like `sdk_tasks`.

They ask the providers' own hosts, because some of these packages send more there than elsewhere.
"""

import asyncio
import os
import sys
from typing import Any

os.environ["OPENAI_API_KEY"] = "sk-not-a-real-key-123"
os.environ["ANTHROPIC_API_KEY"] = "sk-ant-not-a-real-key-123"
SAID: Any = [{"role": "user", "content": "refund ch_1007, naïve “quotes” — and 数字 1.0"}]


def refund(charge: str, amount: int) -> str:
    """Refund a charge."""
    return f"refunded {amount} of {charge}"


def use_litellm() -> None:
    import litellm  # reads its list of prices

    asked: Any = {"model": "openai/gpt-fake"}
    litellm.completion(**asked, messages=SAID, temperature=0.2)
    for _ in litellm.completion(**asked, messages=SAID, stream=True):
        pass
    litellm.completion("anthropic/claude-fake", SAID, max_tokens=64)


def use_litellm_async() -> None:
    import litellm

    asked: Any = {"model": "openai/gpt-fake"}

    async def main() -> None:
        calls = (litellm.acompletion(**asked, messages=SAID, seed=n) for n in range(6))
        await asyncio.gather(*calls)
        async for _ in await litellm.acompletion(**asked, messages=SAID, stream=True):
            pass
        await litellm.acompletion("anthropic/claude-fake", SAID, max_tokens=64)

    asyncio.run(main())


def use_langchain() -> None:
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings

    model = ChatOpenAI(model="gpt-fake", temperature=0)
    model.invoke("say something")
    for _ in model.stream("say something"):
        pass
    model.bind_tools([tool(refund)]).invoke("say something")
    model.batch(["one", "two", "three"])
    ChatOpenAI(model="gpt-fake", use_responses_api=True).invoke("say something")
    OpenAIEmbeddings(check_embedding_ctx_length=False).embed_query("say something")


def use_pydantic_ai() -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

    for model in (OpenAIChatModel("gpt-fake"), OpenAIResponsesModel("gpt-fake")):
        agent = Agent(model, system_prompt="be kind", tools=[refund])
        said = agent.run_sync("refund ch_1007")
        agent.run_sync("and again", message_history=said.all_messages())


def use_openai_agents() -> None:
    from agents import Agent, Runner, function_tool, set_default_openai_api

    tools: Any = [function_tool(refund)]
    agent = Agent(name="refunds", instructions="be kind", model="gpt-fake", tools=tools)
    Runner.run_sync(agent, "refund ch_1007")
    set_default_openai_api("chat_completions")
    Runner.run_sync(agent, "refund ch_1007")
    # What it says of itself goes out from a thread of its own when it ends.


def use_openai_agents_socket() -> None:
    from agents import Agent, Runner, function_tool, set_default_openai_responses_transport

    set_default_openai_responses_transport("websocket")
    tools: Any = [function_tool(refund)]
    agent = Agent(name="refunds", instructions="be kind", model="gpt-fake", tools=tools)
    Runner.run_sync(agent, "refund ch_1007")


def use_openai_agents_realtime() -> None:
    from agents.realtime import RealtimeAgent, RealtimeRunner

    async def main() -> None:
        agent = RealtimeAgent(name="refunds", instructions="be kind")
        session = await RealtimeRunner(agent).run()
        async with session:
            for text in ("refund ch_1007", "and again"):
                await session.send_message(text)
                async for event in session:
                    if event.type == "agent_end":
                        break

    asyncio.run(main())


def use_slack() -> None:
    from slack_sdk import WebClient

    client = WebClient("xoxb-not-a-real-token")
    client.auth_test()
    client.conversations_list(limit=3, types="public_channel,private_channel")
    for _ in range(2):
        block = {"type": "section", "text": {"type": "mrkdwn", "text": "ü *refunded*"}}
        client.chat_postMessage(channel="C1", text="ü refunded", blocks=[block])
    client.api_call("files.upload", files={"file": b"some text"}, data={"channels": "C1"})


def use_slack_async() -> None:
    from slack_sdk.web.async_client import AsyncWebClient

    async def main() -> None:
        client = AsyncWebClient("xoxb-not-a-real-token", trust_env_in_session=True)
        await client.auth_test()
        posts = (client.chat_postMessage(channel=f"C{n}", text="refunded") for n in range(4))
        await asyncio.gather(*posts)
        await client.api_call("files.upload", files={"file": b"some text"}, data={"channels": "C1"})

    asyncio.run(main())


TASKS = {
    name.removeprefix("use_"): task for name, task in globals().items() if name.startswith("use_")
}

if __name__ == "__main__":
    TASKS[sys.argv[1]]()
