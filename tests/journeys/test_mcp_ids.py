"""An MCP client that numbers its calls otherwise on replay gets its answers under the numbers of now."""

import json
import os
import sys
from pathlib import Path

import pytest

from playhead.proxy.trust.environment import environment
from playhead.store import Store
from playhead.tests.support import prepared
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.mcp_server import McpOrigin
from playhead.tests.support.process import Serve
from playhead.timeline import build

CLIENT = Path(__file__).with_name("clients") / "mcp_parallel.py"
ORDER = ("1", "2", "3", "4")


def _run(proxy: Serve, url: str, store: Path, *order: str) -> str:
    env = environment(os.environ, proxy_url=proxy.url_for("mcp"), public_dir=store / "ca")
    done = prepared.run(
        [sys.executable, str(CLIENT), url, *order],
        imports=prepared.MCP,
        text=True,
        timeout=60,
        env=env,
        process_group=0,
    )
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def _ids(store: Store, name: str) -> dict[str, object]:
    """Give the id of each call by what it asked for."""
    run = store.runs.find(name)
    assert run is not None
    asked = [json.loads(one.request.body) for one in store.exchanges.all(run) if one.request.body]
    return {
        json.dumps(one["params"]["arguments"]): one["id"]
        for one in asked
        if one["method"] == "tools/call"
    }


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
def test_concurrent_mcp_calls_replay_in_another_order(
    tmp_path: Path, certificates: Certificates, path: str
) -> None:
    """Every call gets its own result and progress, although the SDK gave the ids to other calls."""
    store = tmp_path / "store"
    flags = ("--listen", "127.0.0.1:0", "--store", store, "--upstream-ca", certificates.root)
    with McpOrigin(certificates) as origin, Serve("--mode", "record", *flags) as proxy:
        url = origin.url + path
        recorded = _run(proxy, url, store, *ORDER)
    with Serve("--mode", "playback", *flags) as proxy:
        replayed = _run(proxy, url, store, *reversed(ORDER))
    said = [json.loads(line) for line in recorded.splitlines()]
    assert [len(line["results"][2]) for line in said] == [1, 2, 3, 4]
    assert all(str(1000 + int(line["case"])) in line["results"][0] for line in said)
    assert replayed == recorded
    with Store.open(store, readonly=True) as opened:
        receipt = build(opened, opened.runs.get("mcp@1"))
        assert len(set(_ids(opened, "mcp").values())) == 2 * len(ORDER)
    assert receipt.faithful is True, receipt.to_json()
    assert receipt.matched.get("canonical", 0) >= len(ORDER)


@pytest.mark.parametrize("named", ["/mcp", "/other"])
def test_an_mcp_server_is_live_if_a_rule_names_it(
    tmp_path: Path, certificates: Certificates, named: str
) -> None:
    """All that the SDK asks it for in a replay: calls, its stream, the end of its session. Under another rule nothing reaches it."""
    store = tmp_path / "store"
    flags = ("--listen", "127.0.0.1:0", "--store", store, "--upstream-ca", certificates.root)
    with McpOrigin(certificates) as origin:
        with Serve("--mode", "record", *flags) as proxy:
            recorded = _run(proxy, f"{origin.url}/mcp", store, *ORDER)
        rules = [
            {"match": f"{method} {origin.url}{named}", "reason": "the server of now"}
            for method in ("POST", "GET", "DELETE")
        ]
        config = tmp_path / "live.yaml"
        config.write_text(json.dumps({"mode": "playback", "live": rules}))
        with Serve("-c", config, *flags) as proxy:
            replayed = _run(proxy, f"{origin.url}/mcp", store, *ORDER)
    reached = sum(len(bodies) for bodies in origin.sent.values())
    with Store.open(store, readonly=True) as opened:
        receipt = build(opened, opened.runs.get("mcp@1"))
    live, served = receipt.counts["live"], receipt.counts["served"]
    if named == "/mcp":
        assert [json.loads(line)["case"] for line in replayed.splitlines()] == list(ORDER)
        assert (served, receipt.counts["refused"]) == (0, 0)
        assert live == receipt.requests == reached // 2  # and as many while it was recorded
    else:
        assert (live, served, replayed) == (0, reached, recorded)
        assert receipt.faithful is True
