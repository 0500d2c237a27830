"""CrewAI with OpenAI's chat completions."""

import sys

import tools
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

buyer = Agent(
    role="buyer",
    goal="buy what the notes say",
    backstory="You work for a shop.",
    tools=[tool(one) for one in (tools.look_up, tools.place_order, tools.read_notes)],
    llm=LLM(model="openai/gpt-4o"),
)
task = Task(description=sys.argv[1], expected_output="what was ordered", agent=buyer)
print(Crew(agents=[buyer], tasks=[task]).kickoff())
