"""httpx, aiohttp and curl in front of failures: says what each of them saw, as JSON.

Reads a list of jobs from standard input: `name`, `client` (httpx, httpx-h2, aiohttp, curl, curl-h2), `url`,
`proxy` (empty for none), `ca` (PEM file), `patience` (seconds without a byte, 0 for many; of curl in all),
`hasty` (whether that is for connecting too), `until` (text after which the client leaves, or empty).
Writes one object a job: `name`, `head` (status line and fields, where an answer began), `body` (what came of
it, as Latin-1), `raised` (the chain of exceptions, each with its errno), and of curl `exit` and `said`.
"""

import asyncio
import json
import os
import re
import ssl
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import aiohttp
import httpx

from playhead.tests.journeys.clients.transcript import fields, without_addresses

_LONG_S = 6.0
PARALLEL = 6


def chain(error: BaseException | None) -> list[list[Any]]:
    """Give the exceptions that led to one, the last first: type, errno, words."""
    found: list[list[Any]] = []
    while error is not None:
        kind = f"{type(error).__module__}.{type(error).__qualname__}"
        text = without_addresses(_steady(str(error)))
        found.append([kind, getattr(error, "errno", None), text])
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found


def _steady(text: str) -> str:
    """Leave out how long something took, and in which of its waits a client's patience ended."""
    if re.search("timed out|timeout", text):
        return "timed out"
    return re.sub(r"after \d+ ms", "after some time", text)


def ask_httpx(job: dict[str, Any]) -> dict[str, Any]:
    """Ask with httpx, with or without HTTP/2."""
    seen: dict[str, Any] = {"head": None, "body": "", "raised": []}
    patience = job["patience"] or _LONG_S
    timeout = httpx.Timeout(_LONG_S, read=patience, connect=patience if job["hasty"] else _LONG_S)
    context = ssl.create_default_context(cafile=job["ca"])
    http2 = job["client"] == "httpx-h2"
    with httpx.Client(
        http2=http2, proxy=job["proxy"] or None, verify=context, timeout=timeout, trust_env=False
    ) as client:
        try:
            with client.stream("GET", job["url"]) as answer:
                head = [answer.http_version, answer.status_code, fields(answer.headers.raw)]
                seen["head"] = head
                for piece in answer.iter_raw():
                    seen["body"] += piece.decode("latin-1")
                    if job["until"] and job["until"] in seen["body"]:
                        break
        except Exception as error:  # whatever it is, it is what is asked for
            seen["raised"] = chain(error)
    return seen


async def ask_aiohttp(job: dict[str, Any]) -> dict[str, Any]:
    """Ask with aiohttp."""
    seen: dict[str, Any] = {"head": None, "body": "", "raised": []}
    patience = job["patience"] or _LONG_S
    connecting = patience if job["hasty"] else _LONG_S
    timeout = aiohttp.ClientTimeout(_LONG_S, sock_read=patience, sock_connect=connecting)
    context = ssl.create_default_context(cafile=job["ca"])
    async with aiohttp.ClientSession(timeout=timeout) as session:
        try:
            given: dict[str, Any] = {"ssl": context} if job["url"].startswith("https") else {}
            async with session.get(job["url"], proxy=job["proxy"] or None, **given) as answer:
                seen["head"] = [answer.status, fields(answer.raw_headers)]
                async for piece in answer.content.iter_any():
                    seen["body"] += piece.decode("latin-1")
                    if job["until"] and job["until"] in seen["body"]:
                        break
        except Exception as error:  # see above
            seen["raised"] = chain(error)
    return seen


def ask_curl(job: dict[str, Any]) -> dict[str, Any]:
    """Ask with curl; it leaves by being ended."""
    command = ["curl", "-q", "-sS", "-N", "-i", "--suppress-connect-headers", "--noproxy", ""]
    command += ["--http2" if job["client"] == "curl-h2" else "--http1.1", "--cacert", job["ca"]]
    command += ["--proxy", job["proxy"]] if job["proxy"] else []
    command += ["--max-time", str(job["patience"] or _LONG_S), job["url"]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        came = ""
        while piece := os.read(running.stdout.fileno(), 65536):
            came += piece.decode("latin-1")
            if job["until"] and job["until"] in came:
                running.terminate()
                break
        said = _steady(running.stderr.read().decode())
    head, _, body = came.partition("\r\n\r\n")
    code = running.returncode
    if code == 55 and "Connection reset" in said:
        # Whether curl meets a reset as it writes a frame of HTTP/2 or as it reads is a race in curl.
        code, said = 56, said.replace("(55) Send failure", "(56) Recv failure")
    return {"head": head, "body": body, "raised": [], "exit": code, "said": said}


def ask(job: dict[str, Any]) -> dict[str, Any]:
    """Do one job."""
    if job["client"].startswith("httpx"):
        seen = ask_httpx(job)
    elif job["client"].startswith("curl"):
        seen = ask_curl(job)
    else:
        seen = asyncio.run(ask_aiohttp(job))
    return {"name": job["name"], **seen}


if __name__ == "__main__":
    with ThreadPoolExecutor(PARALLEL) as pool:
        for report in pool.map(ask, json.load(sys.stdin)):
            print(json.dumps(report), flush=True)
