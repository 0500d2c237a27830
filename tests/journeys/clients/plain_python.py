"""httpx over HTTP/1 and HTTP/2, requests, aiohttp with `trust_env`, and urllib."""

import asyncio
import sys
import urllib.request

import aiohttp
import httpx
import requests

from playhead.tests.journeys.clients.transcript import digest, fields, say

H1, H2 = sys.argv[1:]
UPLOAD = bytes(range(256)) * 300


def say_httpx(case: str, response: httpx.Response) -> None:
    say(
        case,
        status=response.status_code,
        version=response.http_version,
        fields=fields(response.headers.raw),
        body=digest(response.content),
        hops=[(hop.status_code, str(hop.url)) for hop in response.history],
    )


def use_httpx(name: str, base: str, *, http2: bool) -> None:
    with httpx.Client(http2=http2, follow_redirects=True) as client:
        say_httpx(f"{name}-get", client.get(f"{base}/{name}/bytes"))
        say_httpx(f"{name}-json", client.post(f"{base}/{name}/echo", json={"b": 1, "a": [2.50]}))
        say_httpx(f"{name}-hop", client.get(f"{base}/{name}/hop"))
        files = {"file": ("all.bin", UPLOAD, "application/octet-stream")}
        sent = client.post(f"{base}/{name}/echo?multipart", data={"k": "v"}, files=files)
        say_httpx(f"{name}-multipart", sent)
        with client.stream("GET", f"{base}/{name}/chunks") as response:
            pieces = list(response.iter_raw())
            say(
                f"{name}-stream",
                status=response.status_code,
                fields=fields(response.headers.raw),
                body=digest(b"".join(pieces)),
            )


async def use_httpx_async() -> None:
    async with httpx.AsyncClient(http2=True) as client:
        urls = [f"{H2}/httpx-async/{name}" for name in ("bytes", "large", "gzip", "empty")]
        found = await asyncio.gather(*(client.get(url) for url in urls))
        for url, response in zip(urls, found, strict=True):
            say_httpx(f"httpx-async-{url.rpartition('/')[2]}", response)


def use_requests() -> None:
    def tell(case: str, response: requests.Response) -> None:
        raw = response.raw.headers if hasattr(response.raw, "headers") else response.headers
        say(
            case,
            status=response.status_code,
            reason=response.reason,
            fields=fields(raw.items()),
            body=digest(response.content),
            hops=[(hop.status_code, hop.url) for hop in response.history],
        )

    with requests.Session() as session:
        tell("requests-get", session.get(f"{H1}/requests/bytes"))
        tell("requests-gzip", session.get(f"{H1}/requests/gzip"))
        tell("requests-head", session.head(f"{H1}/requests/bytes"))
        tell("requests-post", session.post(f"{H1}/requests/echo", data={"a": "1", "b": "ü"}))
        tell("requests-see", session.post(f"{H1}/requests/see", json=[1]))
        files = {"file": ("all.bin", UPLOAD, "application/octet-stream")}
        sent = session.post(f"{H1}/requests/echo?multipart", data={"k": "v"}, files=files)
        tell("requests-multipart", sent)
        with session.get(f"{H1}/requests/gzip?raw", stream=True) as response:
            body = response.raw.read(decode_content=False)
            say("requests-raw-gzip", status=response.status_code, body=digest(body))


async def use_aiohttp() -> None:
    async def tell(case: str, response: aiohttp.ClientResponse) -> None:
        say(
            case,
            status=response.status,
            reason=response.reason,
            fields=fields(response.raw_headers),
            body=digest(await response.read()),
        )

    async with aiohttp.ClientSession(trust_env=True) as session:
        async with session.get(f"{H1}/aiohttp/bytes") as response:
            await tell("aiohttp-get", response)
        async with session.post(f"{H1}/aiohttp/echo", json={"a": 1}) as response:
            await tell("aiohttp-post", response)
        form = aiohttp.FormData()
        form.add_field("k", "v")
        form.add_field("file", UPLOAD, filename="all.bin")
        async with session.post(f"{H1}/aiohttp/echo?multipart", data=form) as response:
            await tell("aiohttp-multipart", response)
        async with session.get(f"{H1}/aiohttp/chunks") as response:
            pieces = [piece async for piece, _ in response.content.iter_chunks()]
            say("aiohttp-stream", status=response.status, body=digest(b"".join(pieces)))


def use_urllib() -> None:
    for case, data in (("bytes", None), ("echo", b"a=1")):
        with urllib.request.urlopen(f"{H1}/urllib/{case}", data) as response:
            say(
                f"urllib-{case}",
                status=response.status,
                reason=response.reason,
                fields=fields(response.getheaders()),
                body=digest(response.read()),
            )


use_httpx("httpx-h1", H1, http2=False)
use_httpx("httpx-h2", H2, http2=True)
asyncio.run(use_httpx_async())
use_requests()
asyncio.run(use_aiohttp())
use_urllib()
