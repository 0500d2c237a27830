"""OpenHands' own agent, as its SDK starts it, with Anthropic's messages."""

import os
import sys

from openhands.sdk import LLM, Conversation
from openhands.tools.preset.default import get_default_agent

llm = LLM(model="anthropic/claude-sonnet-4-5", api_key=os.environ["ANTHROPIC_API_KEY"])
conversation = Conversation(agent=get_default_agent(llm=llm, cli_mode=True), workspace=os.getcwd())
conversation.send_message(sys.argv[1])
conversation.run()
print("done")
