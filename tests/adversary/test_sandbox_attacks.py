"""What an agent does inside `replay` changes neither what the replay says nor what the next one does.

The attacks, each with its reason, are in sandbox_attacks.py. They were written from the documents before there was code for
them; one that is taken out is listed there with its reason. Each is tried as root and as somebody else; unless everything is
counted, several of them in one replay.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from playhead.proxy.sandbox.filesystem.break_hard_links import separate
from playhead.tests.support.counts import FULL
from playhead.tests.support.machine import SOMEBODY
from playhead.tests.support.needs import need

from .place import told_by
from .sandbox_attacks import ATTACKS, Attack

pytestmark = pytest.mark.timeout(1000)
"""Of a module's first test, which waits for all that is tried."""

_NOT_GREEN = {121, 122, 123, 125}
_USERS = {"root": 0, "somebody": SOMEBODY}


_PLACES = {"": (), "strict": ("--sandbox", "strict"), "files": ("--sandbox-files",)}


@pytest.fixture(
    scope="module",
    params=[(user, place) for user in _USERS for place in (_PLACES if FULL else [""])],
    ids=lambda pair: "-".join(filter(None, pair)),
)
def told(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What came of every attack, of one user in one sort of sandbox."""
    user, place = request.param
    if place == "files":
        need("bubblewrap")
    if user == "root":
        need("root")
    # Else each replay there would do so: what is written to the environment is gone with that machine.
    separate()
    found = told_by("sandbox", str(_USERS[user]), *_PLACES[place])
    return {"user": user, "place": place, **found}


def _those(*kinds: str) -> Iterator[Any]:
    for attack in ATTACKS:
        if attack.kind in kinds:
            yield pytest.param(attack, id=attack.id)


def _group(told: dict[str, Any], attack: Attack) -> dict[str, Any]:
    """Give what came of the replay in which an attack was tried."""
    if attack.needs and not os.path.exists(attack.needs):
        pytest.skip(f"there is no {attack.needs} on this machine")
    if attack.root and told["user"] != "root":
        pytest.skip("only root has any prospect")
    found = [group for group in told["groups"] if attack.id in group["attacks"]]
    if not found:
        pytest.skip(f"tried as {told['user']} only with PLAYHEAD_FULL")
    (group,) = found
    assert isinstance(group, dict)
    return group


def test_there_are_as_many_as_there_have_to_be() -> None:
    """A dozen attacks on package, interpreter, configuration, certificates, store and receipt; each says what for."""
    ids = [attack.id for attack in ATTACKS]
    assert len(ids) == len(set(ids))
    assert len([attack for attack in ATTACKS if attack.kind == "tamper"]) >= 12
    assert all(attack.reason for attack in ATTACKS)


@pytest.mark.parametrize("attack", _those("tamper"))
def test_tampering_fails_or_is_told(told: dict[str, Any], attack: Attack) -> None:
    """Files are the same in device, inode and hash, or the replay ended with 125 and names what differs."""
    group = _group(told, attack)
    changed = [path for path in group["changed"] if attack.touches in path]
    why = (attack.reason, group["told"].get(attack.id), group["code"], group["err"][-1000:])
    assert group["code"] in _NOT_GREEN, why
    if group["code"] == 125:
        told_of = [path for path in changed if path in group["err"]]
        told_of += [path for path in changed if os.path.dirname(path) in group["err"]]
        assert told_of or not changed, why
    else:
        assert changed == [], why


def test_nothing_of_an_attack_runs_outside(told: dict[str, Any]) -> None:
    """Not in the replay, and not in the next command, unless the replay ended with 125; and all that changed is some attack's."""
    attacks = {attack.id: attack for attack in ATTACKS}
    for group in told["groups"]:
        why = (group["attacks"], group["code"], group["ran_later"])
        assert group["ran_outside"] == "", why
        assert group["ran_later"] == "" or group["code"] == 125, why
        parts = [attacks[name].touches for name in group["attacks"]]
        strange = [path for path in group["changed"] if not any(part in path for part in parts)]
        assert strange == [], group["attacks"]


@pytest.mark.parametrize("attack", _those("closed"))
def test_what_leads_out_is_closed(told: dict[str, Any], attack: Attack) -> None:
    """It fails, and the replay says what it would have said without it."""
    group = _group(told, attack)
    assert group["told"].get(attack.id, "nothing was told") != "done", attack.reason
    assert attack.id in group["told"], group["err"][-1000:]
    assert group["code"] in _NOT_GREEN, group["err"][-1000:]
    assert group["changed"] == []


@pytest.mark.parametrize("attack", _those("tamper", "closed"))
def test_no_receipt_says_what_is_not_so(told: dict[str, Any], attack: Attack) -> None:
    """The agent asked for something that is not on the tape: whoever reads the receipt, on the terminal or as a file, is told."""
    group = _group(told, attack)
    receipt = group["receipt"]
    assert receipt is None or receipt.get("faithful") is False, (attack.reason, receipt)
    assert "NOT FAITHFUL" in group["err"] or group["code"] == 125, group["err"][-1000:]


@pytest.mark.parametrize("attack", _those("used"))
def test_a_socket_that_is_used_is_told_and_fails_the_replay(
    told: dict[str, Any], attack: Attack
) -> None:
    """Unless it could not be reached; one that is within reach and not used fails nothing."""
    group = _group(told, attack)
    if group["told"].get(attack.id) != "done":
        return
    assert group["code"] in _NOT_GREEN, attack.reason
    name = "datagrams" if "datagram" in attack.id else "socket"
    assert f"elsewhere/{name}" in json.dumps(group["receipt"]), attack.reason
    assert f"elsewhere/{name}" in group["err"], attack.reason


def test_an_agent_can_still_install_into_its_environment(told: dict[str, Any]) -> None:
    """And use what it installed; its replay is green (of an imported tape), and Playhead's own files are the same afterwards."""
    if told["place"] == "files":
        pytest.skip("environments are read only there: docs/sandbox.md, files")
    if "install" not in told:
        pytest.skip(f"tried as {told['user']} only with PLAYHEAD_FULL")
    done = told["install"]
    assert (done["code"], done["out"].strip()) == (0, "42"), done["err"][-1000:]
    assert done["receipt"]["exit_code"] == 0, done["err"]
    assert done["receipt"]["tape"]["standing"] == "imported"
    assert done["changed"] == []


def test_a_second_name_of_a_module_leads_to_another_file(told: dict[str, Any]) -> None:
    """The command writes to all of them, and what Playhead runs from is as it was."""
    if "linked" not in told:
        pytest.skip(f"tried as {told['user']} only with PLAYHEAD_FULL")
    done = told["linked"]
    assert done["code"] == 0, done["err"][-1000:]
    assert done["written"] == done["links"] > 10
    assert (done["changed"], done["ran"]) == ([], "")


def test_a_receipt_can_be_checked_by_anybody(told: dict[str, Any]) -> None:
    """`playhead verify --receipt FILE` ends with 0 for a true one, and with 1 for one in which something was turned."""
    if "forged" not in told:
        pytest.skip(f"tried as {told['user']} only with PLAYHEAD_FULL")
    checked = {name: done for name, done in told["forged"].items() if name != "replay"}
    assert len(checked) >= 2
    expected = {name: 0 if name == "true" else 1 for name in checked}
    assert {name: done["code"] for name, done in checked.items()} == expected, checked
