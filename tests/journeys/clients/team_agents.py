"""A team of agents for each framework, run once: `team_agents NAME BASE [alike]`.

A lead has an analyst and a checker, and the checker has an auditor. Each agent's client says in a header whose it is.
`alike` gives all of them one prompt, as many a program does.
"""

import asyncio
import os
import sys
import urllib.request
from collections.abc import Callable
from typing import Any

BASE = sys.argv[2] if len(sys.argv) > 2 else ""
MODEL, KEY = "gpt-4o", "sk-not-a-real-key-123"
SAID = "Compare the regions, and say what you found."
PROMPTS = {
    "lead": "You lead a desk. Ask your people, then sum up.",
    "analyst": "You find the figures of a region.",
    "checker": "You check the books of a region.",
    "auditor": "You audit a region, and trust nobody.",
}
if "alike" in sys.argv:
    PROMPTS = dict.fromkeys(PROMPTS, "You are a helpful assistant.")
os.environ.update(
    OPENAI_API_KEY=KEY,
    OPENAI_BASE_URL=f"{BASE}/v1",
    OPENAI_API_BASE=f"{BASE}/v1",
    OPENAI_AGENTS_DISABLE_TRACING="1",
    HAYSTACK_TELEMETRY_ENABLED="False",
    AGNO_TELEMETRY="false",
    CREWAI_DISABLE_TELEMETRY="true",
    OTEL_SDK_DISABLED="true",
    CREWAI_TRACING_ENABLED="false",
    GOOGLE_API_KEY=KEY,
    GOOGLE_GEMINI_BASE_URL=BASE,
)


def told(name: str, *, in_turn: bool = False) -> dict[str, str]:
    """Give the header that says whose a request is.

    in_turn: whether one who is asked cannot be asked again meanwhile.
    """
    return {"x-agent": name} | ({"x-in-turn": "1"} if in_turn else {})


def look_up(place: str) -> str:
    """Look a place up.

    Args:
        place: Its path.
    """
    with urllib.request.urlopen(f"{BASE}/{place}") as answer:
        text: str = answer.read().decode()
    return text


async def look_up_async(place: str) -> str:
    """Look a place up.

    Args:
        place: Its path.
    """
    return await asyncio.to_thread(look_up, place)


look_up_async.__name__ = "look_up"


def use_threads() -> None:
    """No framework: the OpenAI SDK, and a thread for each who is asked."""
    import json
    from concurrent.futures import ThreadPoolExecutor

    from openai import OpenAI

    def schema(name: str, argument: str) -> Any:
        given = {"type": "object", "properties": {argument: {"type": "string"}}}
        return {"type": "function", "function": {"name": name, "parameters": given}}

    def run(name: str, said: str, asks: dict[str, Callable[[str], str]]) -> str:
        messages: Any = [{"role": "system", "content": PROMPTS[name]}]
        messages.append({"role": "user", "content": said})
        tools = [schema(one, "place" if one == "look_up" else "task") for one in asks]
        with OpenAI(default_headers=told(name)) as client, ThreadPoolExecutor(4) as pool:
            while True:
                asked: Any = {"model": MODEL, "messages": messages, "tools": tools}
                message: Any = client.chat.completions.create(**asked).choices[0].message
                if not message.tool_calls:
                    return str(message.content)
                messages.append(message.to_dict())
                given = [
                    pool.submit(
                        asks[one.function.name], *json.loads(one.function.arguments).values()
                    )
                    for one in message.tool_calls
                ]
                for one, result in zip(message.tool_calls, given, strict=True):
                    messages.append(
                        {"role": "tool", "tool_call_id": one.id, "content": result.result()}
                    )

    def ask(name: str, asks: dict[str, Callable[[str], str]]) -> Callable[[str], str]:
        return lambda task: run(name, task, asks)

    analyst, auditor = (ask(name, {"look_up": look_up}) for name in ("analyst", "auditor"))
    checker = ask("checker", {"ask_auditor": auditor})
    run("lead", SAID, {"ask_analyst": analyst, "ask_checker": checker})


def use_langgraph() -> None:
    """Agents as tools, which run on threads."""
    from langchain_core.tools import StructuredTool, tool
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import create_react_agent

    def make(name: str, *tools: Any) -> Any:
        model = ChatOpenAI(model=MODEL, default_headers=told(name))
        return create_react_agent(model, list(tools), prompt=PROMPTS[name])

    def ask(name: str, agent: Any) -> Any:
        def run(task: str) -> str:
            return str(agent.invoke({"messages": [("user", task)]})["messages"][-1].content)

        return StructuredTool.from_function(run, name=f"ask_{name}", description=f"Ask the {name}.")

    analyst = ask("analyst", make("analyst", tool(look_up)))
    auditor = ask("auditor", make("auditor", tool(look_up)))
    lead = make("lead", analyst, ask("checker", make("checker", auditor)))
    lead.invoke({"messages": [("user", SAID)]})


def use_openai_agents() -> None:
    """Agents as tools, over the Responses API."""
    from agents import Agent, ModelSettings, Runner, function_tool

    def make(name: str, *tools: Any) -> Any:
        settings = ModelSettings(extra_headers=told(name))
        return Agent(
            name=name,
            instructions=PROMPTS[name],
            model=MODEL,
            model_settings=settings,
            tools=list(tools),
        )

    def ask(agent: Any) -> Any:
        return agent.as_tool(f"ask_{agent.name}", f"Ask the {agent.name}.")

    look: Any = function_tool(look_up_async)
    checker = make("checker", ask(make("auditor", look)))
    Runner.run_sync(make("lead", ask(make("analyst", look)), ask(checker)), SAID)


def use_pydantic_ai() -> None:
    """Delegation in tools, which run as tasks of one loop."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.settings import ModelSettings

    def make(name: str, *tools: Any) -> Any:
        settings = ModelSettings(extra_headers=told(name))
        return Agent(
            OpenAIChatModel(MODEL),
            instructions=PROMPTS[name],
            model_settings=settings,
            tools=tools,
        )

    def ask(name: str, agent: Any) -> Any:
        async def run(task: str) -> str:
            return str((await agent.run(task)).output)

        run.__name__ = f"ask_{name}"
        return run

    checker = make("checker", ask("auditor", make("auditor", look_up_async)))
    analyst = make("analyst", look_up_async)
    make("lead", ask("analyst", analyst), ask("checker", checker)).run_sync(SAID)


def use_smolagents() -> None:
    """Managed agents."""
    from smolagents import OpenAIModel, ToolCallingAgent, tool

    def make(name: str, *managed: Any) -> Any:
        model = OpenAIModel(
            model_id=MODEL,
            api_base=f"{BASE}/v1",
            api_key=KEY,
            client_kwargs={"default_headers": told(name, in_turn=True)},
        )
        return ToolCallingAgent(
            tools=[] if managed else [tool(look_up)],
            model=model,
            name=name,
            description=f"The {name}.",
            instructions=PROMPTS[name],
            managed_agents=list(managed),
            verbosity_level=0,
        )

    make("lead", make("analyst"), make("checker", make("auditor"))).run(SAID)


def use_langgraph_supervisor() -> None:
    """Sub-graphs to which a supervisor hands the conversation over."""
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import create_react_agent
    from langgraph_supervisor import create_supervisor

    def model(name: str) -> Any:
        return ChatOpenAI(model=MODEL, default_headers=told(name))

    agents: Any = [
        create_react_agent(model(name), [tool(look_up)], prompt=PROMPTS[name], name=name)
        for name in ("analyst", "checker")
    ]
    graph = create_supervisor(agents, model=model("lead"), prompt=PROMPTS["lead"])
    graph.compile().invoke({"messages": [("user", SAID)]})


def use_openai_handoffs() -> None:
    """Handoffs there and back."""
    from agents import Agent, ModelSettings, Runner, function_tool, set_default_openai_api

    set_default_openai_api("chat_completions")

    def make(name: str, *tools: Any) -> Any:
        settings = ModelSettings(extra_headers=told(name))
        return Agent(
            name=name,
            instructions=PROMPTS[name],
            model=MODEL,
            model_settings=settings,
            tools=list(tools),
        )

    look: Any = function_tool(look_up_async)
    lead, analyst, checker = make("lead"), make("analyst", look), make("checker")
    lead.handoffs = [analyst, checker]
    analyst.handoffs = checker.handoffs = [lead]
    Runner.run_sync(lead, SAID, max_turns=30)


def use_autogen() -> None:
    """Agents as tools, which remember what they were asked before."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.tools import AgentTool
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    def make(name: str, *tools: Any) -> Any:
        headers = told(name, in_turn=True)
        client = OpenAIChatCompletionClient(model=MODEL, default_headers=headers)
        return AssistantAgent(
            name,
            client,
            description=f"The {name}.",
            system_message=PROMPTS[name],
            tools=list(tools),
            max_tool_iterations=9,
        )

    analyst = make("analyst", look_up_async)
    checker = make("checker", AgentTool(make("auditor", look_up_async)))
    lead = make("lead", AgentTool(analyst), AgentTool(checker))
    asyncio.run(lead.run(task=SAID))


def use_autogen_team() -> None:
    """Two who take turns, and hear each other."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.conditions import MaxMessageTermination
    from autogen_agentchat.teams import RoundRobinGroupChat
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    def make(name: str, *tools: Any) -> Any:
        client = OpenAIChatCompletionClient(model=MODEL, default_headers=told(name))
        return AssistantAgent(
            name,
            client,
            system_message=PROMPTS[name],
            tools=list(tools),
            reflect_on_tool_use=True,
        )

    members = [make("analyst", look_up_async), make("checker")]
    team = RoundRobinGroupChat(members, termination_condition=MaxMessageTermination(8))
    asyncio.run(team.run(task=SAID))


def use_llama_index() -> None:
    """Handoffs of a workflow."""
    from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
    from llama_index.llms.openai import OpenAI

    def make(name: str, *tools: Any) -> Any:
        return FunctionAgent(
            name=name,
            description=f"The {name}.",
            system_prompt=PROMPTS[name],
            tools=list(tools),
            llm=OpenAI(MODEL, api_base=f"{BASE}/v1", default_headers=told(name)),
        )

    async def run() -> None:
        agents = [make("lead"), make("analyst", look_up_async), make("checker")]
        await AgentWorkflow(agents=agents, root_agent="lead").run(SAID)

    asyncio.run(run())


def use_strands() -> None:
    """Agents as tools."""
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    def make(name: str, *tools: Any) -> Any:
        settings = {"base_url": f"{BASE}/v1", "api_key": KEY, "default_headers": told(name)}
        return Agent(
            model=OpenAIModel(model_id=MODEL, client_args=settings),
            system_prompt=PROMPTS[name],
            tools=list(tools),
            callback_handler=None,
        )

    def ask(name: str, *tools: Any) -> Any:
        def run(task: str) -> str:
            return str(make(name, *tools)(task))

        run.__name__, run.__doc__ = f"ask_{name}", f"Ask the {name}."
        return tool(run)

    look: Any = tool(look_up)
    make("lead", ask("analyst", look), ask("checker", ask("auditor", look)))(SAID)


def use_agno() -> None:
    """A team in a team."""
    from agno.agent import Agent
    from agno.models.openai import OpenAIChat
    from agno.team import Team

    def model(name: str) -> Any:
        return OpenAIChat(id=MODEL, default_headers=told(name))

    def make(name: str) -> Any:
        return Agent(
            name=name,
            id=name,
            model=model(name),
            instructions=PROMPTS[name],
            tools=[look_up_async],
            telemetry=False,
        )

    def lead(name: str, *members: Any) -> Any:
        return Team(
            list(members),
            name=name,
            id=name,
            model=model(name),
            instructions=PROMPTS[name],
            telemetry=False,
        )

    asyncio.run(lead("lead", make("analyst"), lead("checker", make("auditor"))).arun(SAID))


def use_haystack() -> None:
    """Agents as tools."""
    from haystack.components.agents import Agent
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.tools import create_tool_from_function

    def make(name: str, *tools: Any) -> Any:
        chat = OpenAIChatGenerator(model=MODEL, generation_kwargs={"extra_headers": told(name)})
        return Agent(chat_generator=chat, system_prompt=PROMPTS[name], tools=list(tools))

    def ask(name: str, *tools: Any) -> Any:
        def run(task: str) -> str:
            """Ask."""
            said = make(name, *tools).run(messages=[ChatMessage.from_user(task)])
            return str(said["last_message"].text)

        return create_tool_from_function(run, name=f"ask_{name}")

    look: Any = create_tool_from_function(look_up)
    lead = make("lead", ask("analyst", look), ask("checker", ask("auditor", look)))
    lead.run(messages=[ChatMessage.from_user(SAID)])


def use_crewai() -> None:
    """A hierarchy, whose manager has the others work."""
    from crewai import LLM, Agent, Crew, Process, Task
    from crewai.tools import tool

    def make(name: str, *, asks: bool, **more: Any) -> Any:
        return Agent(
            role=name,
            goal=PROMPTS[name],
            backstory=f"A good {name}.",
            llm=LLM(model=f"openai/{MODEL}", default_headers=told(name, in_turn=True)),
            allow_delegation=asks,
            **more,
        )

    look: Any = tool("look_up")(look_up)
    crew = Crew(
        agents=[
            make("analyst", asks=False, tools=[look]),
            make("checker", asks=True),
            make("auditor", asks=False, tools=[look]),
        ],
        manager_agent=make("lead", asks=True),
        tasks=[Task(description=SAID, expected_output="A summary.")],
        process=Process.hierarchical,
    )
    crew.kickoff()


def use_google_adk() -> None:
    """Agents as tools."""
    from google.adk.agents import LlmAgent
    from google.adk.runners import InMemoryRunner
    from google.adk.tools.agent_tool import AgentTool
    from google.genai import types

    def make(name: str, *tools: Any) -> Any:
        options = types.HttpOptions(headers=told(name))
        return LlmAgent(
            name=name,
            description=f"The {name}.",
            instruction=PROMPTS[name],
            model="gemini-2.5-pro",
            tools=list(tools),
            generate_content_config=types.GenerateContentConfig(http_options=options),
        )

    async def run() -> None:
        checker = make("checker", AgentTool(make("auditor", look_up_async)))
        lead = make("lead", AgentTool(make("analyst", look_up_async)), AgentTool(checker))
        await InMemoryRunner(lead).run_debug(SAID, quiet=True)

    asyncio.run(run())


def use_google_adk_transfer() -> None:
    """Sub-agents, to which the conversation is transferred."""
    from google.adk.agents import LlmAgent
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    def make(name: str, *tools: Any, **more: Any) -> Any:
        options = types.HttpOptions(headers=told(name))
        return LlmAgent(
            name=name,
            description=f"The {name}.",
            instruction=PROMPTS[name],
            model="gemini-2.5-pro",
            tools=list(tools),
            generate_content_config=types.GenerateContentConfig(http_options=options),
            **more,
        )

    members = [make("analyst", look_up_async), make("checker")]
    lead = make("lead", sub_agents=members)
    asyncio.run(InMemoryRunner(lead).run_debug(SAID, quiet=True))


FRAMEWORKS: dict[str, Callable[[], None]] = {
    name.removeprefix("use_"): use for name, use in globals().items() if name.startswith("use_")
}

if __name__ == "__main__":
    FRAMEWORKS[sys.argv[1]]()
