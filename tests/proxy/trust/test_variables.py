"""One table of variables: compose.yaml and the documentation say the same."""

import re
from pathlib import Path
from typing import Any

import yaml

import playhead
from playhead.proxy.docker.container_spec import agent_variables, share_certificates
from playhead.proxy.trust.ca import open_ca
from playhead.proxy.trust.environment import variables
from playhead.proxy.trust.variables import OUTRANKING, TABLE, Holds, names

URL = "http://run:token@127.0.0.1:8080"
ROOT = Path(playhead.__file__).resolve().parent
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
CLIENTS = (ROOT / "docs/clients.md").read_text()
TOLD = {
    "http://RUN:TOKEN@127.0.0.1:8080": Holds.PROXY,
    "empty": Holds.NOTHING,
    "BUNDLE": Holds.BUNDLE,
    "CERT": Holds.CERTIFICATE,
    "1": Holds.YES,
    "a file with the line ca_certificate = BUNDLE": Holds.WGETRC,
    "what it was": Holds.JAVA,
}
"""What the page says, up to a comma or colon and a space, and what it means."""


def documented() -> dict[str, tuple[Holds, bool]]:
    """Read the block of variables in the page: what each holds, and whether only where it is set."""
    section = CLIENTS.partition("## Variables under `serve`")[2].partition("\n## ")[0]
    made = {}
    for line in section.splitlines():
        found = re.fullmatch(r"((?:[A-Za-z_][A-Za-z_0-9]* )*[A-Za-z_][A-Za-z_0-9]*) {2,}(.+)", line)
        if found:
            meaning = TOLD[re.split(r"[:,] ", found[2])[0]]
            for name in found[1].split():
                assert name not in made, name
                made[name] = (meaning, "where they are set" in found[2])
    return made


def test_every_variable_is_documented() -> None:
    """By name, with what it holds, and no other is."""
    table = {name: (row.holds, row.only_where_set) for row in TABLE for name in names(row)}
    assert documented() == table
    assert all(f"`{name}`" in CLIENTS or f"`{name.upper()}`" in CLIENTS for name in OUTRANKING)


def test_no_variable_stands_twice() -> None:
    """One row each, with somebody who reads it."""
    all_names = [name for row in TABLE for name in names(row)]
    assert len(all_names) == len(set(all_names))
    # Of that the lower case is ours, and what it might be in other cases is taken out.
    assert {name.lower() for name in all_names} & set(OUTRANKING) <= {"npm_config_cafile"}
    assert all(row.readers for row in TABLE)


def test_compose_writes_none_of_them_itself() -> None:
    """Its agents are given them by `playhead sidecar`, out of the same table."""
    ours = {name for row in TABLE for name in names(row)} | set(OUTRANKING)
    for service, told in COMPOSE["services"].items():
        assert not ours & set(told.get("environment", ())), service
    agents = [told for name, told in COMPOSE["services"].items() if name.startswith("agent-")]
    assert len(agents) == 3
    assert all(". /agent/environment;" in told["entrypoint"][2] for told in agents)


def test_agents_in_containers_are_given_every_variable(tmp_path: Path) -> None:
    """Whatever their image has of them."""
    ca = open_ca(tmp_path, tmp_path / "ca", environ={})
    shared = share_certificates(ca.bundle_file.parent, tmp_path / "shared")
    image = {"HTTPS_PROXY": "http://elsewhere", "NO_PROXY": "localhost", "PATH": "/bin"}
    found = agent_variables(image, {}, url=URL, certificates=shared, preload_bundle=None)
    assert found == variables({}, proxy_url=URL, public_dir=shared, seen_at=shared)
