"""Ask a model once with the client that is named, and print what a person would read of the error.

Ends with 1 where the request failed, and with 0 where it did not.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any

KEY = "sk-test"
QUESTION: list[Any] = [{"role": "user", "content": "hi"}]


def openai_chat() -> None:
    from openai import OpenAI

    OpenAI(api_key=KEY).chat.completions.create(model="gpt-4o", messages=QUESTION)


def openai_responses() -> None:
    from openai import OpenAI

    OpenAI(api_key=KEY).responses.create(model="gpt-4o", input="hi", stream=True)


def anthropic() -> None:
    from anthropic import Anthropic

    Anthropic(api_key=KEY).messages.create(model="claude", max_tokens=9, messages=QUESTION)


def google_genai() -> None:
    from google import genai

    client = genai.Client(api_key=KEY)
    client.models.generate_content(model="gemini-2.5-flash", contents="hi")


def boto3() -> None:
    import boto3 as sdk

    keys = {"aws_access_key_id": "AKIATEST", "aws_secret_access_key": "x"}
    client = sdk.client("bedrock-runtime", region_name="us-east-1", **keys)
    content = [{"role": "user", "content": [{"text": "hi"}]}]
    client.converse(modelId="amazon.nova-lite-v1:0", messages=content)


def stripe() -> None:
    import stripe as sdk

    sdk.ca_bundle_path = os.environ["SSL_CERT_FILE"]
    sdk.StripeClient(KEY).v1.refunds.create({"charge": "ch_1"})


def litellm() -> None:
    import litellm as sdk

    sdk.completion(model="openai/gpt-4o", api_key=KEY, messages=QUESTION)


def litellm_anthropic() -> None:
    import litellm as sdk

    sdk.completion(model="anthropic/claude-sonnet-4-5", api_key=KEY, messages=QUESTION)


def langchain_openai() -> None:
    from langchain_openai import ChatOpenAI

    ChatOpenAI(model="gpt-4o", api_key=KEY).invoke("hi")


def openai_agents() -> None:
    from agents import Agent, Runner, set_tracing_disabled

    os.environ["OPENAI_API_KEY"] = KEY
    set_tracing_disabled(disabled=True)
    asyncio.run(Runner.run(Agent(name="a"), "hi"))


def pydantic_ai() -> None:
    from pydantic_ai import Agent

    os.environ["OPENAI_API_KEY"] = KEY
    Agent("openai-chat:gpt-4o").run_sync("hi")


def smolagents() -> None:
    from smolagents import OpenAIServerModel

    OpenAIServerModel(model_id="gpt-4o", api_key=KEY).generate(QUESTION)


def llama_index() -> None:
    from llama_index.llms.openai import OpenAI

    OpenAI(model="gpt-4o", api_key=KEY).complete("hi")


CLIENTS: dict[str, Callable[[], None]] = {
    one.__name__: one
    for one in (
        *(openai_chat, openai_responses, anthropic, google_genai, boto3, stripe),
        *(litellm, litellm_anthropic, langchain_openai, openai_agents, pydantic_ai),
        *(smolagents, llama_index),
    )
}

if __name__ == "__main__":
    try:
        CLIENTS[sys.argv[1]]()
    except Exception as error:  # whatever an SDK makes of it is what is looked at
        print(f"{type(error).__name__}: {error}")
        sys.exit(1)
