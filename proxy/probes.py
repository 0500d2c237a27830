"""The clients that the doctor tries: one small program each, that makes one request.

A probe asks for an address with a token of its own, so that proxy and origin can tell whether it reached them.
Programs get the address as a literal; nothing of the request comes from outside.
"""

import importlib.util
import json
import secrets
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

_SET_BY_US = (
    "Start it through `playhead record` or `playhead replay`, or set HTTPS_PROXY and https_proxy."
)
_TRUST_BY_US = "Start it through `playhead record` or `playhead replay`, or set {} to the bundle."
_GO_LOOPBACK = "Go never sends loopback addresses to a proxy; give local servers another host name."


@dataclass(frozen=True, slots=True)
class Probe:
    """One client and how to try it."""

    name: str
    installed: bool
    command: tuple[str, ...]
    token: str
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Text by name, to be put into the folder the command is run in."""
    any_exit: bool = False
    """The client fails by design once it has its answer, which is not in its own format."""
    timeout_s: float = 10.0
    if_bypassed: str = _SET_BY_US
    """What to do when it goes past the proxy."""
    if_untrusted: str = _TRUST_BY_US.format("SSL_CERT_FILE")
    """What to do when it refuses the certificate."""


@dataclass(frozen=True, slots=True)
class _Client:
    """A row of the table: `{url}` in commands and programs stands for the address, as a string literal."""

    name: str
    program: str = sys.executable
    """Looked for on PATH."""
    module: str = ""
    """Looked for in the interpreter that runs Playhead."""
    arguments: tuple[str, ...] = ()
    """`{plain}` stands for the address as it is."""
    python: str = ""
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    needs: str = ""
    """A further program it needs on PATH."""
    any_exit: bool = False
    timeout_s: float = 10.0
    if_bypassed: str = _SET_BY_US
    trusts_by: str = "SSL_CERT_FILE"


_AIOHTTP = """
import aiohttp, asyncio
async def main():
    async with aiohttp.ClientSession({options}) as session, session.get({url}) as answer:
        await answer.read()
asyncio.run(main())
"""
_NODE_HTTPS = """
require('https').get({url}, answer => answer.resume())
  .on('error', error => { console.error(error.code + ' ' + error.message); process.exit(1); });
"""
_FETCH = """
fetch({url}).then(answer => answer.text())
  .catch(error => { console.error(`${error} ${error.cause ?? ''}`); globalThis.Deno ? Deno.exit(1) : process.exit(1); });
"""
_JAVA = """
import java.net.URI;
import java.net.http.*;
public class Probe {
    public static void main(String[] arguments) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create({url})).build();
        HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.discarding());
    }
}
"""
_GO = """
package main

import (
    "fmt"
    "net/http"
    "os"
)

func main() {
    answer, err := http.Get({url})
    if err != nil {
        fmt.Fprintln(os.Stderr, err)
        os.Exit(1)
    }
    answer.Body.Close()
}
"""
_NODE_ADVICE = (
    "Node follows proxy variables from 22.21 and 24 on, with NODE_USE_ENV_PROXY=1;"
    " older ones need undici's EnvHttpProxyAgent as global dispatcher, or a proxy agent."
)
_AIOHTTP_ADVICE = (
    "aiohttp ignores proxy variables by default: aiohttp.ClientSession(trust_env=True)."
)

_CLIENTS = (
    _Client(
        "curl",
        "curl",
        arguments=("-sS", "-o", "/dev/null", "{plain}"),
        trusts_by="CURL_CA_BUNDLE",
    ),
    _Client(
        "wget",
        "wget",
        arguments=("-nv", "--tries=1", "-O", "/dev/null", "{plain}"),
        if_bypassed="wget reads the lower-case https_proxy alone; a proxy line in ~/.wgetrc ranks above it.",
        trusts_by="ca_certificate in the file that WGETRC names",
    ),
    _Client(
        "git",
        "git",
        arguments=("ls-remote", "{plain}"),
        any_exit=True,
        if_bypassed="Set HTTPS_PROXY; http.proxy in git's configuration ranks above it.",
        trusts_by="GIT_SSL_CAINFO",
    ),
    _Client("python urllib", python="import urllib.request as u\nu.urlopen({url}).read()"),
    _Client(
        "requests",
        module="requests",
        python="import requests\nrequests.get({url})",
        trusts_by="REQUESTS_CA_BUNDLE",
    ),
    _Client("httpx", module="httpx", python="import httpx\nhttpx.get({url})"),
    _Client(
        "aiohttp",
        module="aiohttp",
        python=_AIOHTTP.replace("{options}", ""),
        if_bypassed=_AIOHTTP_ADVICE,
    ),
    _Client(
        "aiohttp trust_env",
        module="aiohttp",
        python=_AIOHTTP.replace("{options}", "trust_env=True"),
    ),
    _Client(
        "openai",
        module="openai",
        python="import openai\n"
        "openai.OpenAI(base_url={url}, api_key='none', max_retries=0).models.list()",
        any_exit=True,
    ),
    _Client(
        "node https",
        "node",
        arguments=("-e", _NODE_HTTPS),
        if_bypassed=_NODE_ADVICE,
        trusts_by="NODE_EXTRA_CA_CERTS",
    ),
    _Client(
        "node fetch",
        "node",
        arguments=("-e", _FETCH),
        if_bypassed=_NODE_ADVICE,
        trusts_by="NODE_EXTRA_CA_CERTS",
    ),
    _Client("deno", "deno", arguments=("eval", _FETCH), trusts_by="DENO_CERT"),
    _Client("bun", "bun", arguments=("-e", _FETCH), trusts_by="NODE_EXTRA_CA_CERTS"),
    _Client(
        "java",
        "java",
        needs="javac",
        arguments=("-XX:TieredStopAtLevel=1", "Probe.java"),
        files=MappingProxyType({"Probe.java": _JAVA}),
        if_bypassed="Java takes its proxy from system properties alone: set JAVA_TOOL_OPTIONS.",
        trusts_by="-Djavax.net.ssl.trustStore in JAVA_TOOL_OPTIONS",
    ),
    _Client(
        "go",
        "go",
        arguments=("run", "probe.go"),
        files=MappingProxyType({"probe.go": _GO}),
        timeout_s=60.0,  # it compiles its standard library when its cache is empty
        if_bypassed=f"Set HTTPS_PROXY. {_GO_LOOPBACK}",
    ),
)


def probes(
    target: str,
    *,
    path: str | None = None,
    make_token: Callable[[], str] = lambda: secrets.token_hex(8),
) -> tuple[Probe, ...]:
    """List a probe for every known client, installed or not.

    target: https address; a path segment with the probe's token is added to it.
    path: where programs are looked for; by default PATH.
    """
    return tuple(_probe(client, target, path, make_token()) for client in _CLIENTS)


def _probe(client: _Client, target: str, path: str | None, token: str) -> Probe:
    url = f"{target.rstrip('/')}/{token}"

    def fill(text: str) -> str:
        # A JSON string is a literal of every language here.
        return text.replace("{url}", json.dumps(url)).replace("{plain}", url)

    program = shutil.which(client.program, path=path)
    installed = (
        program is not None
        and (not client.module or importlib.util.find_spec(client.module) is not None)
        and (not client.needs or shutil.which(client.needs, path=path) is not None)
    )
    arguments = ("-c", client.python) if client.python else client.arguments
    return Probe(
        client.name,
        installed,
        (program or client.program, *map(fill, arguments)),
        token,
        {name: fill(text) for name, text in client.files.items()},
        client.any_exit,
        client.timeout_s,
        client.if_bypassed,
        _TRUST_BY_US.format(client.trusts_by),
    )
