"""The doctor's probes: one small program per client, which prints the time and makes one request.

A probe asks for an address of its own, so that it can be told who came. Programs get the address as a literal; nothing
of the request comes from outside. Each is tried with a folder of its own as its working folder.
"""

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

_SET_BY_US = "Start it through `playhead record` or `playhead replay`, or set the variables of `playhead env`."
_TRUST_BY_US = "Start it through `playhead record` or `playhead replay`, or set {} to the bundle."
_GO_LOOPBACK = "Go never sends loopback addresses to a proxy; give local servers another host name."
PATH = "/doctor"
_NOTHING: Mapping[str, str] = MappingProxyType({})
PRINTED = (r"playhead-clock (\d+)", "")
"""How programs of ours tell the time: seconds since 1970."""
_STAMP = (r"(\d{4}-\d\d-\d\d[ T_]\d\d[:_]\d\d[:_]\d\d)", "%Y %m %d %H %M %S")
_TIME_OF_DAY = (r"(?m)^(\d\d:\d\d:\d\d)\.\d", "%H %M %S")


@dataclass(frozen=True, slots=True)
class Probe:
    """One client and how to try it."""

    name: str
    installed: bool
    command: tuple[str, ...]
    url: str
    """What it asks for, or what that begins with."""
    files: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Text by name, to be put into the folder the command is run in."""
    variables: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """What it is given beside all others."""
    left: str = ""
    """Pattern of the files that it leaves, where they tell the time."""
    clock: tuple[str, str] | None = None
    """Where it tells the time: a pattern whose group is the time, and the parts that this has; none are seconds."""
    any_exit: bool = False
    """The client fails by design once it has its answer, which is not in its own format."""
    timeout_s: float = 15.0
    slow: bool = False
    """It takes seconds, and is tried where all are asked for."""
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
    """`{plain}` stands for the address as it is, `{place}` for its host and port."""
    python: str = ""
    files: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    variables: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    left: str = ""
    clock: tuple[str, str] | None = None
    needs: str = ""
    """A further program it needs on PATH."""
    by_name: bool = False
    """It is asked for a name: what is on loopback it takes to no proxy, or not under its own address."""
    any_exit: bool = False
    timeout_s: float = 15.0
    slow: bool = False
    package: str = ""
    """Looked for among Node's packages of the working folder and those that are installed for all."""
    if_bypassed: str = _SET_BY_US
    trusts_by: str = "SSL_CERT_FILE"


_TELL_PYTHON = "import time\nprint('playhead-clock', int(time.time()), flush=True)\n"
_TELL_JAVASCRIPT = "console.log('playhead-clock ' + Math.floor(Date.now() / 1000));\n"
_AIOHTTP = """
import aiohttp, asyncio
async def main():
    async with aiohttp.ClientSession({options}) as session, session.get({url}) as answer:
        await answer.read()
asyncio.run(main())
"""
_NODE_HTTPS = (
    _TELL_JAVASCRIPT
    + """
require('https').get({url}, answer => answer.resume())
  .on('error', error => { console.error(error.code + ' ' + error.message); process.exit(1); });
"""
)
_FETCH = (
    _TELL_JAVASCRIPT
    + """
fetch({url}).then(answer => answer.text())
  .catch(error => { console.error(`${error} ${error.cause ?? ''}`); globalThis.Deno ? Deno.exit(1) : process.exit(1); });
"""
)
_FETCH_HEADERS = _FETCH.replace(
    "fetch({url})", "fetch({url}, {headers: new Headers({'x-doctor': 'probe'})})"
)
_NODE_SDK = (
    _TELL_JAVASCRIPT
    + """
const found = require({package}), OpenAI = found.OpenAI ?? found.default ?? found;
new OpenAI({baseURL: {url}, apiKey: 'none', maxRetries: 0}).models.list()
  .catch(error => { console.error(`${error} ${error.cause ?? ''}`); process.exit(1); });
"""
)
_JAVA = """
import java.net.URI;
import java.net.http.*;
public class Probe {
    public static void main(String[] arguments) throws Exception {
        System.out.println("playhead-clock " + System.currentTimeMillis() / 1000);
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
    "time"
)

func main() {
    fmt.Println("playhead-clock", time.Now().Unix())
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
_HTTP_CLIENT_ADVICE = "http.client knows no proxies but by set_tunnel: use another client."
_AIOHTTP_ADVICE = (
    "aiohttp ignores proxy variables by default: aiohttp.ClientSession(trust_env=True)."
)

_GRPC = """
import grpc
channel = grpc.secure_channel({place}, grpc.ssl_channel_credentials())
channel.unary_unary('/playhead.Doctor/Ask')(b'')
"""
_WEBSOCKETS = """
from websockets.sync.client import connect
connect({url}.replace('https:', 'wss:')).close()
"""
_HTTP_CLIENT = """
from http.client import HTTPSConnection
connection = HTTPSConnection({place})
connection.request('GET', '/doctor')
connection.getresponse().read()
"""
_BOTO3 = """
import boto3
from botocore.config import Config
config = Config(retries={'total_max_attempts': 1})
keys = dict(aws_access_key_id='a', aws_secret_access_key='b', region_name='us-east-1')
boto3.client('sts', endpoint_url={url}, config=config, **keys).get_caller_identity()
"""
_PERL = """
use LWP::UserAgent; $| = 1; print 'playhead-clock ' . time . "\\n";
my $answer = LWP::UserAgent->new->get({url}); die $answer->status_line . "\\n" unless $answer->is_success;
"""
_RUBY = """
require 'net/http'; $stdout.sync = true; puts "playhead-clock #{Time.now.to_i}"
Net::HTTP.get_response(URI({url}))
"""
_PHP = """
echo 'playhead-clock ' . time() . "\\n"; exit(file_get_contents({url}) === false ? 1 : 0);
"""
_NPM = MappingProxyType({"npm_config_fetch_retries": "0", "npm_config_update_notifier": "false"})


def _python(name: str, program: str, module: str = "", **more: Any) -> _Client:
    return _Client(
        name,
        module=module,
        python=_TELL_PYTHON + program.lstrip("\n"),
        clock=PRINTED,
        timeout_s=20.0,
        **more,
    )


_CLIENTS = (
    _Client(
        "curl",
        "curl",
        arguments=("-sSv", "--trace-time", "-o", "/dev/null", "{plain}"),
        clock=_TIME_OF_DAY,
        trusts_by="CURL_CA_BUNDLE",
    ),
    _Client(
        "wget",
        "wget",
        arguments=("-nv", "--tries=1", "-O", "/dev/null", "{plain}"),
        clock=_STAMP,
        if_bypassed="wget reads the lower-case https_proxy alone; a proxy line in ~/.wgetrc ranks above it.",
        trusts_by="ca_certificate in the file that WGETRC names",
    ),
    _Client(
        "git",
        "git",
        arguments=("ls-remote", "{plain}"),
        variables=MappingProxyType({"GIT_TRACE": "1", "GIT_TERMINAL_PROMPT": "0"}),
        clock=_TIME_OF_DAY,
        any_exit=True,
        if_bypassed="Set HTTPS_PROXY; http.proxy in git's configuration ranks above it.",
        trusts_by="GIT_SSL_CAINFO",
    ),
    _Client(
        "pip",
        "pip",
        slow=True,
        arguments=(
            *("--disable-pip-version-check", "--retries", "0", "--log", "pip.log"),
            *("download", "--no-deps", "--index-url", "{plain}", "playhead-doctor"),
        ),
        left="pip.log",
        clock=_STAMP,
        any_exit=True,
        trusts_by="PIP_CERT",
    ),
    _Client(
        "uv",
        "uv",
        arguments=(
            *("pip", "install", "--no-config", "--no-cache", "--target", "installed"),
            *("--python", sys.executable, "--index-url", "{plain}", "playhead-doctor"),
        ),
        variables=MappingProxyType({"UV_HTTP_RETRIES": "0"}),
        any_exit=True,
    ),
    _Client(
        "npm",
        "npm",
        slow=True,
        needs="node",
        arguments=("view", "playhead-doctor", "--registry", "{plain}", "--logs-dir", "logs"),
        variables=_NPM,
        by_name=True,
        left="logs/*",
        clock=_STAMP,
        any_exit=True,
        trusts_by="npm_config_cafile",
    ),
    _Client(
        "cargo",
        "cargo",
        slow=True,
        arguments=("search", "--index", "sparse+{plain}/", "playhead-doctor"),
        variables=MappingProxyType({"CARGO_NET_RETRY": "0"}),
        any_exit=True,
        trusts_by="CARGO_HTTP_CAINFO",
    ),
    _Client(
        "gcloud",
        "gcloud",
        slow=True,
        arguments=("projects", "list", "--quiet", "--project", "playhead-doctor"),
        files=MappingProxyType({"token": "none"}),
        variables=MappingProxyType(
            {
                "CLOUDSDK_CONFIG": "gcloud",
                "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": "token",
                "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDRESOURCEMANAGER": "{plain}/",
                "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "1",
                "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "1",
            }
        ),
        left="gcloud/logs/*/*",
        clock=(r"logs/(\d{4}\.\d\d\.\d\d/\d\d\.\d\d\.\d\d)", "%Y %m %d %H %M %S"),
        any_exit=True,
        timeout_s=20.0,
        trusts_by="CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    ),
    _Client(
        "aws",
        "aws",
        slow=True,
        arguments=(
            *("sts", "get-caller-identity", "--endpoint-url", "{plain}"),
            *("--no-sign-request", "--region", "us-east-1", "--debug"),
        ),
        variables=MappingProxyType({"AWS_MAX_ATTEMPTS": "1"}),
        clock=_STAMP,
        any_exit=True,
        trusts_by="AWS_CA_BUNDLE",
    ),
    _python("python urllib", "import urllib.request as u\nu.urlopen({url}).read()"),
    _python("python http.client", _HTTP_CLIENT, if_bypassed=_HTTP_CLIENT_ADVICE),
    _python(
        "requests",
        "import requests\nrequests.get({url})",
        module="requests",
        trusts_by="REQUESTS_CA_BUNDLE",
    ),
    _python("httpx", "import httpx\nhttpx.get({url})", module="httpx"),
    _python(
        "aiohttp",
        _AIOHTTP.replace("{options}", ""),
        module="aiohttp",
        if_bypassed=_AIOHTTP_ADVICE,
    ),
    _python("aiohttp trust_env", _AIOHTTP.replace("{options}", "trust_env=True"), module="aiohttp"),
    _python("websockets", _WEBSOCKETS, module="websockets", any_exit=True),
    _python(
        "grpcio",
        _GRPC,
        module="grpc",
        any_exit=True,
        if_bypassed="grpcio reads https_proxy and grpc_proxy in lower case alone.",
        trusts_by="GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    ),
    _python(
        "openai",
        "import openai\nopenai.OpenAI(base_url={url}, api_key='none', max_retries=0).models.list()",
        module="openai",
        any_exit=True,
    ),
    _python("boto3", _BOTO3, module="boto3", any_exit=True, slow=True, trusts_by="AWS_CA_BUNDLE"),
    _python(
        "stripe",
        "import stripe\nstripe.api_key, stripe.api_base, stripe.max_network_retries ="
        " 'none', {url}, 0\nstripe.Balance.retrieve()",
        module="stripe",
        any_exit=True,
        trusts_by="stripe.ca_bundle_path",
    ),
    _Client(
        "node https",
        "node",
        arguments=("-e", _NODE_HTTPS),
        clock=PRINTED,
        if_bypassed=_NODE_ADVICE,
        trusts_by="NODE_EXTRA_CA_CERTS",
    ),
    _Client(
        "node fetch",
        "node",
        arguments=("-e", _FETCH),
        clock=PRINTED,
        if_bypassed=_NODE_ADVICE,
        trusts_by="NODE_EXTRA_CA_CERTS",
    ),
    _Client(
        "node fetch with Headers",
        "node",
        arguments=("-e", _FETCH_HEADERS),
        clock=PRINTED,
        if_bypassed=_NODE_ADVICE,
        trusts_by="NODE_EXTRA_CA_CERTS",
    ),
    _Client(
        "node openai",
        "node",
        package="openai",
        arguments=("-e", _NODE_SDK),
        clock=PRINTED,
        any_exit=True,
        if_bypassed=_NODE_ADVICE,
        trusts_by="NODE_EXTRA_CA_CERTS",
    ),
    _Client("deno", "deno", arguments=("eval", _FETCH), clock=PRINTED, trusts_by="DENO_CERT"),
    _Client("bun", "bun", arguments=("-e", _FETCH), clock=PRINTED, trusts_by="NODE_EXTRA_CA_CERTS"),
    _Client(
        "java",
        "java",
        slow=True,
        needs="javac",
        arguments=("-XX:TieredStopAtLevel=1", "Probe.java"),
        files=MappingProxyType({"Probe.java": _JAVA}),
        clock=PRINTED,
        timeout_s=20.0,
        if_bypassed="Java takes its proxy from system properties alone: set JAVA_TOOL_OPTIONS.",
        trusts_by="-Djavax.net.ssl.trustStore in JAVA_TOOL_OPTIONS",
    ),
    _Client(
        "go",
        "go",
        slow=True,
        arguments=("run", "probe.go"),
        files=MappingProxyType({"probe.go": _GO}),
        clock=PRINTED,
        timeout_s=60.0,  # it compiles its standard library when its cache is empty
        by_name=True,
        if_bypassed=f"Set HTTPS_PROXY. {_GO_LOOPBACK}",
    ),
    _Client(
        "ruby",
        "ruby",
        arguments=("-e", _RUBY),
        clock=PRINTED,
        by_name=True,
        if_bypassed="Set http_proxy, which Net::HTTP reads in lower case alone. It sends no loopback address to a proxy.",
    ),
    _Client(
        "php streams",
        "php",
        arguments=("-r", _PHP),
        clock=PRINTED,
        if_bypassed="PHP's streams know no proxy variables; its curl functions and Composer do.",
    ),
    _Client(
        "perl LWP",
        "perl",
        arguments=("-e", _PERL),
        clock=PRINTED,
        if_bypassed="LWP follows proxy variables where PERL_LWP_ENV_PROXY=1 is set.",
        trusts_by="PERL_LWP_SSL_CA_FILE",
    ),
)


def probes(
    near: Callable[[int], str], far: Callable[[int], str], *, path: str | None = None
) -> tuple[Probe, ...]:
    """List a probe for every known client, installed or not.

    near, far: give an address by the number of a probe, on loopback and not: https, a host and port of its own each,
        and no path.
    path: where programs are looked for; by default PATH.
    """
    return tuple(
        _probe(client, far(number) if client.by_name else near(number), path)
        for number, client in enumerate(_CLIENTS)
    )


def _probe(client: _Client, origin: str, path: str | None) -> Probe:
    url = f"{origin}{PATH}"
    place = origin.removeprefix("https://")

    def fill(text: str) -> str:
        # A JSON string is a literal of every language here.
        text = text.replace("{url}", json.dumps(url)).replace("{place}", json.dumps(place))
        return text.replace("{plain}", url).replace("{package}", json.dumps(package))

    program = shutil.which(client.program, path=path)
    package = _find_package(client.package, program) if client.package and program else ""
    installed = (
        program is not None
        and (not client.package or bool(package))
        and (not client.module or importlib.util.find_spec(client.module) is not None)
        and (not client.needs or shutil.which(client.needs, path=path) is not None)
    )
    arguments = ("-c", client.python) if client.python else client.arguments
    return Probe(
        client.name,
        installed,
        (program or client.program, *map(fill, arguments)),
        url,
        {name: fill(text) for name, text in client.files.items()},
        {name: fill(text) for name, text in client.variables.items()},
        client.left,
        client.clock,
        client.any_exit,
        client.timeout_s,
        client.slow,
        client.if_bypassed,
        _TRUST_BY_US.format(client.trusts_by),
    )


def _find_package(name: str, node: str) -> str:
    """Find a package of Node's: beside the working folder or above it, or with Node itself; empty where there is none."""
    here, program = Path.cwd(), Path(node).resolve()
    folders = [*(one / "node_modules" for one in (here, *here.parents))]
    folders += [program.parent.parent / "lib/node_modules", Path("/usr/local/lib/node_modules")]
    return next((str(one / name) for one in folders if (one / name / "package.json").is_file()), "")
