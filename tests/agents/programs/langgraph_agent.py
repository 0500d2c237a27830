"""LangGraph's agent, with OpenAI's chat completions."""

import sys

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from tools import look_up, place_order, read_notes

agent = create_agent(ChatOpenAI(model="gpt-4o"), [look_up, place_order, read_notes])
result = agent.invoke({"messages": [{"role": "user", "content": sys.argv[1]}]})
print(result["messages"][-1].content)
