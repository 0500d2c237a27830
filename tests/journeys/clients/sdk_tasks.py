"""One task for each SDK: `sdk_tasks NAME BASE`. Says nothing; what it asked is on the tape."""

import asyncio
import io
import json
import os
import sys
from typing import Any

SAID = [{"role": "user", "content": "refund ch_1007, naïve “quotes” — and 数字 1.0"}]
TOOL = {
    "name": "refund",
    "description": "Refund a charge.",
    "parameters": {
        "type": "object",
        "properties": {"charge": {"type": "string"}, "amount": {"type": "integer"}},
        "required": ["charge"],
    },
}


def use_openai(base: str) -> None:
    from openai import OpenAI

    with OpenAI(base_url=f"{base}/openai/v1", api_key="sk-not-a-real-key-123") as client:
        tools: Any = [{"type": "function", "function": TOOL}]
        asked: Any = {"model": "gpt-fake", "messages": SAID, "tools": tools, "temperature": 0.2}
        client.chat.completions.create(**asked)
        for _ in client.chat.completions.create(**asked, stream=True):
            pass
        client.responses.create(model="gpt-fake", input="say something")
        client.files.create(file=("a.jsonl", b'{"a": 1}\n'), purpose="batch")
        client.models.list()


def use_openai_async(base: str) -> None:
    from openai import AsyncOpenAI

    async def ask(client: Any, number: int) -> None:
        asked: Any = {"model": "gpt-fake", "messages": [*SAID, *SAID], "seed": number % 3}
        if number % 2:
            async for _ in await client.chat.completions.create(**asked, stream=True):
                pass
        else:
            await client.chat.completions.create(**asked)

    async def main() -> None:
        base_url = f"{base}/openai_async/v1"
        async with AsyncOpenAI(base_url=base_url, api_key="sk-not-a-real-key-123") as client:
            # All at once, so in any order, and some of them equal.
            await asyncio.gather(*(ask(client, number) for number in range(8)))
            upload = ("a.jsonl", io.BytesIO(b'{"a": 1}\n'))
            await client.files.create(file=upload, purpose="batch")

    asyncio.run(main())


def use_openai_retry(base: str) -> None:
    from openai import OpenAI

    # The first try of each is answered 500.
    with OpenAI(base_url=f"{base}/busy/v1", api_key="sk-not-a-real-key-123") as client:
        asked: Any = {"model": "gpt-fake", "messages": SAID}
        client.chat.completions.create(**asked)
        client.responses.create(model="gpt-fake", input="say something")


def use_anthropic(base: str) -> None:
    from anthropic import Anthropic

    with Anthropic(base_url=f"{base}/anthropic", api_key="sk-ant-not-a-real-key-123") as client:
        tools: Any = [
            {"name": "refund", "description": "Refund.", "input_schema": TOOL["parameters"]}
        ]
        asked: Any = {"model": "claude-fake", "max_tokens": 64, "messages": SAID, "tools": tools}
        client.messages.create(**asked)
        client.messages.create(**asked, system="be kind")
        client.messages.count_tokens(model="claude-fake", messages=asked["messages"])
        with client.messages.stream(**asked, system="be brief") as stream:
            assert stream.get_final_text() == "yes"


def use_google(base: str) -> None:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=f"{base}/google")
    client = genai.Client(api_key="AIzaNotARealKey123", http_options=options)
    config: Any = {"temperature": 0.2, "system_instruction": "be kind"}
    client.models.generate_content(model="gemini-fake", contents="say something", config=config)
    chat = client.chats.create(model="gemini-fake")
    chat.send_message("say something")
    chat.send_message("say it again")


def use_boto3(base: str) -> None:
    import boto3
    from botocore.config import Config

    session = boto3.Session("AKIAIOSFODNN7EXAMPLE", "not-a-secret", region_name="us-east-1")
    config = Config(s3={"addressing_style": "path"})
    host = base

    def client(name: str) -> Any:
        return session.client(name, endpoint_url=f"{host}/aws", config=config)

    said = [{"role": "user", "content": [{"text": "say something"}]}]
    client("bedrock-runtime").converse(modelId="fake.model-v1:0", messages=said)
    client("dynamodb").get_item(TableName="t", Key={"id": {"S": "7"}, "at": {"N": "1.0"}})
    client("dynamodb").put_item(TableName="t", Item={"id": {"S": "8"}})
    s3 = client("s3")
    s3.put_object(Bucket="b", Key="k/ä.txt", Body=b"some bytes", Metadata={"a": "1"})
    s3.get_object(Bucket="b", Key="k/ä.txt", Range="bytes=0-3")
    client("sqs").send_message(QueueUrl=f"{host}/aws/q", MessageBody="hello")


def use_stripe(base: str) -> None:
    import stripe

    stripe.ca_bundle_path = os.environ["SSL_CERT_FILE"]  # no variable says it
    client = stripe.StripeClient("sk_test_not_a_real_key", base_addresses={"api": f"{base}/stripe"})
    for amount in (4900, 4900, 100):
        params: Any = {"charge": "ch_1007", "amount": amount, "metadata": {"case": "7"}}
        client.v1.refunds.create(params)
    client.v1.customers.list({"limit": 3, "email": "a+b@example.com"})


def use_httpx(base: str) -> None:
    import httpx

    with httpx.Client(base_url=f"{base}/plain/httpx") as client:
        client.get("/things", params={"b": "2", "a": ["1", "3"]}).raise_for_status()
        client.post("/json", json={"b": 1.0, "a": [SAID]}).raise_for_status()
        client.post("/form", data={"a": "1", "b": "ü"}).raise_for_status()
        client.post("/upload", data={"n": "1"}, files={"f": ("a.txt", b"text")}).raise_for_status()
        client.put("/bytes", content=iter([b"one", b"two"])).raise_for_status()


def use_httpx2(base: str) -> None:
    import httpx2

    with httpx2.Client(base_url=f"{base}/plain/httpx2") as client:
        client.get("/things", params={"b": "2", "a": ["1", "3"]}).raise_for_status()
        client.post("/json", json={"b": 1.0, "a": [SAID]}).raise_for_status()
        client.post("/form", data={"a": "1", "b": "ü"}).raise_for_status()
        client.post("/upload", data={"n": "1"}, files={"f": ("a.txt", b"text")}).raise_for_status()


def use_httpx_h2(base: str) -> None:
    import httpx

    async def ask() -> None:
        async with httpx.AsyncClient(http2=True, base_url=f"{base}/plain/h2") as client:
            sent: Any = {"data": {"n": "1"}, "files": {"f": ("a.txt", b"text")}}
            for answer in (
                await client.get("/things", params={"b": "2", "a": ["1", "3"]}),
                await client.post("/json", json={"b": 1.0, "a": [SAID]}),
                await client.post("/upload", **sent),
                *await asyncio.gather(*(client.get(f"/all?n={n}") for n in range(8))),
            ):
                assert answer.raise_for_status().http_version == "HTTP/2"

    asyncio.run(ask())


def use_urllib(base: str) -> None:
    from urllib.request import Request, urlopen

    url = f"{base}/plain/urllib"
    sent = json.dumps({"b": 1.0, "a": SAID}).encode()
    for asked in (
        Request(f"{url}/things?b=2&a=1"),
        Request(f"{url}/json", sent, {"content-type": "application/json"}),
        Request(f"{url}/form", b"a=1&b=2"),
        Request(f"{url}/bytes", bytes(range(256)), method="PUT"),
    ):
        with urlopen(asked) as answer:
            answer.read()


def use_requests(base: str) -> None:
    import requests

    with requests.Session() as client:
        url = f"{base}/plain/requests"
        client.get(f"{url}/things", params={"b": "2", "a": ["1", "3"]}).raise_for_status()
        client.post(f"{url}/json", json={"b": 1.0, "a": SAID}).raise_for_status()
        client.post(f"{url}/form", data={"a": "1", "b": "ü"}).raise_for_status()
        sent = {"f": ("a.txt", io.BytesIO(b"text"))}
        client.post(f"{url}/upload", data={"n": "1"}, files=sent).raise_for_status()


def use_aiohttp(base: str) -> None:
    import aiohttp

    async def ask() -> None:
        async with aiohttp.ClientSession(trust_env=True, raise_for_status=True) as client:
            url = f"{base}/plain/aiohttp"
            form = aiohttp.FormData({"n": "1"})
            form.add_field("f", b"text", filename="a.txt")
            for path, sent in (
                ("json", {"json": {"b": 1.0, "a": SAID}}),
                ("form", {"data": {"a": "1", "b": "ü"}}),
                ("upload", {"data": form}),
            ):
                async with client.post(f"{url}/{path}", **sent) as answer:
                    await answer.read()
            # All at once, so in any order.
            await asyncio.gather(*(_read(client, f"{url}/things?n={n}") for n in range(8)))

    asyncio.run(ask())


async def _read(client: Any, url: str) -> None:
    async with client.get(url) as answer:
        await answer.read()


TASKS = {
    name.removeprefix("use_"): task for name, task in globals().items() if name.startswith("use_")
}

if __name__ == "__main__":
    TASKS[sys.argv[1]](sys.argv[2])
