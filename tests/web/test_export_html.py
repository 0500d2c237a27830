"""One file to share: it opens from disk without network, is redacted, says each thing once, and can be verified."""

import json
import os
import re
import stat
from collections import Counter
from pathlib import Path

import pytest

from playhead.store import Store
from playhead.tests.support.agent_tapes import Tape, chat, chat_answer, said
from playhead.tests.support.browser import Browser
from playhead.tests.support.counts import FULL
from playhead.tests.support.exchanges import write_run
from playhead.tests.support.firefox import Firefox
from playhead.tests.support.looking_back import write_store
from playhead.tests.support.process import playhead
from playhead.tests.web.cases.checks import check_harmless, check_quiet
from playhead.tests.web.cases.hostile_store import LIGHT
from playhead.tests.web.cases.hostile_store import RUN as HOSTILE
from playhead.tests.web.cases.kinds_store import PLAN
from playhead.tests.web.cases.kinds_store import RUN as EVERY
from playhead.tests.web.cases.refund_store import CAUSE, DUPLICATE, RUN, write_refund_store
from playhead.web.single_file_page import split_file

MOST_BYTES = 5_000_000
"""Of a coding run of 300 steps. Source: the issue's bars."""
_LINK_BYTES = 16
"""Of the hash before an event, at least. Source: docs/architecture.md, `events`."""
_KEY = re.compile(r"\b[0-9a-f]{64}\b")


def export(store: Path, run: str, file: Path) -> str:
    """Export a run; give what is printed."""
    done = playhead("export", run, "--html", file, "--store", store)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_the_cause_is_found_in_the_file(
    refund_store: Path, tmp_path: Path, browser: Browser
) -> None:
    """By the same clicks as on the page, from disk: every claim leads to its exchange, and nothing is asked."""
    file = tmp_path / "refund.html"
    export(refund_store, RUN, file)
    await browser.call(
        "Network.emulateNetworkConditions",
        offline=True,
        latency=0,
        downloadThroughput=0,
        uploadThroughput=0,
    )
    await browser.go(file.as_uri())
    await browser.find("heading", f"^{RUN}$")
    await browser.click("link", rf"^{DUPLICATE} POST .*possible duplicate of {CAUSE}")
    await browser.find("heading", rf"^{DUPLICATE}\b")
    await browser.click("button", r"^Origin of (form )?amount: 4900$")
    await browser.click("link", rf"^{CAUSE} answer \$\.amount")
    await browser.find("heading", rf"^{CAUSE}\b")
    painted = "document.getElementById('canvas').getContext('2d').getImageData(0, 0, 300, 20).data.some(Boolean)"
    await browser.until(painted)
    shown = await browser.text()
    assert "client left after 1.0 s" in shown
    await check_harmless(browser, is_file=True)
    check_quiet(browser)
    for name in ("Approve", "Deny", "Run again"):
        assert await browser.nodes("button", f"^{name}") == []


def test_the_file_asks_for_nothing(refund_store: Path, tmp_path: Path) -> None:
    """It has a policy of its own, and no address that a browser would fetch."""
    file = tmp_path / "refund.html"
    export(refund_store, RUN, file)
    text = file.read_text("utf-8")
    policy = re.search(
        r"<meta http-equiv=\"?content-security-policy\"? content=\"([^\"]+)\"", text, re.IGNORECASE
    )
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    assert "http" not in policy[1]
    assert text.index(policy[0]) < text.index("<script")
    assert (
        re.findall(r"<(?:link|img|script|iframe|source)\b[^>]*(?:src|href)=[\"']?(?!data:|#)", text)
        == []
    )
    assert re.findall(r"@import|url\((?![\"']?data:|#)", text) == []
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600


def test_the_file_is_verified_by_its_receiver(refund_store: Path, tmp_path: Path) -> None:
    """With the key that the export prints; not once a digit is another, by another key, or without any."""
    store, file = refund_store, tmp_path / "refund.html"
    key = _KEY.search(export(store, RUN, file))
    assert key is not None
    text = file.read_text("utf-8")
    assert RUN in text
    elsewhere = ("--store", str(tmp_path / "elsewhere"))
    write_refund_store(tmp_path / "elsewhere")

    def verify(one: Path, *words: str) -> int:
        return playhead("verify", "--receipt", one, *words).returncode

    assert verify(file, "--store", str(store)) == 0
    done = playhead("verify", "--receipt", file, "--key", key[0], *elsewhere)
    assert (done.returncode, key[0] in done.stdout) == (0, True)  # no name of it that nobody knows
    assert verify(file, *elsewhere) == 1
    other = key[0].translate(str.maketrans("0123456789abcdef", "123456789abcdef0"))
    assert verify(file, "--key", other, *elsewhere) == 1
    forged = tmp_path / "forged.html"
    forged.write_text(text.replace("4900", "4901"))
    assert forged.read_text() != text
    assert verify(forged, "--key", key[0], *elsewhere) == 1
    begin, receipt, end = split_file(file.read_bytes()) or (b"", b"", b"")
    for spelled in (
        receipt.replace(b"\\u0026", b"&"),
        receipt.replace(b'":', b'": ', 1),
        receipt + b"\n",
    ):
        if spelled != receipt:  # the same values in other bytes: a browser may read markup there
            forged.write_bytes(begin + spelled + end)
            assert verify(forged, "--key", key[0], *elsewhere) == 1
    forged.write_bytes(receipt.replace(b"\\u003c", b"<"))  # without its page, and its policy
    assert verify(forged, "--key", key[0], *elsewhere) == 1
    assert verify(forged.rename(tmp_path / "forged.json"), "--key", key[0], *elsewhere) == 1
    forged.write_text("<!doctype html><p>no receipt</p>")
    assert verify(forged, "--key", key[0], *elsewhere) in (1, 2)
    assert verify(file, "--key", "abc", *elsewhere) == 2


def test_the_file_has_the_chain_of_the_run(refund_store: Path, tmp_path: Path) -> None:
    """The hash that `verify` knows the log by: a change of the run is another one."""
    store, file = refund_store, tmp_path / "refund.html"
    told = json.loads(playhead("export", RUN, "--html", file, "--store", store, "--json").stdout)
    assert told["file"] == str(file)
    assert told["bytes"] == file.stat().st_size
    assert told["runs"] == [RUN]
    with Store.open(store, readonly=True) as opened:
        *_, last = opened.events.raw(opened.runs.get(RUN))
    assert last[:_LINK_BYTES].hex() in file.read_text("utf-8")


def test_shared_text_is_there_once(tmp_path: Path) -> None:
    """A run of 300 steps, each of which repeats its conversation, is no larger than it may be."""
    tape, marks = Tape("coding"), []
    asked = [said("system", "You are a coding agent. " + "Be careful with files. " * 400)]
    for number in range(150):
        mark = f"mark-{number:04}-" + "x" * 40
        marks.append(mark)
        asked = [*asked, said("user", f"{mark} " + f"line {number} of the file; " * 60)]
        tape.model(chat(asked), chat_answer(f"Edited {number}.", id=f"chatcmpl-{number}"))
        tape.get(f"https://shop.test/files/{number}", {"file": number, "text": "a line\n" * 50})
        asked = [*asked, said("assistant", f"Edited {number}.")]
    store = write_store(
        tmp_path / "store", lambda store: write_run(store, "coding", tape.exchanges)
    )
    file = tmp_path / "coding.html"
    export(store, "coding", file)
    text = file.read_text("utf-8")
    assert len(text.encode()) <= MOST_BYTES
    found = Counter(re.findall(r"mark-\d{4}-x{40}", text))
    assert set(found) == set(marks)
    assert max(found.values()) <= 3
    assert text.count("Be careful with files. " * 100) <= 3


async def test_hostile_text_does_nothing_in_the_file(
    hostile_store: Path, tmp_path: Path, browser: Browser
) -> None:
    """Each payload stands in it, and none runs, at any step."""
    file = tmp_path / "hostile.html"
    export(hostile_store, HOSTILE, file)
    await browser.go(file.as_uri())
    await browser.find("heading", f"^{HOSTILE}$")
    await browser.focus("slider", "^Time$")
    await browser.press("Home")
    each = 5 if FULL else 25
    for seq in range(1, 2 * len(LIGHT), each):
        await browser.find("heading", rf"^{seq}\b")
        await check_harmless(browser, is_file=True)
        await browser.run(f"location.hash = '#{seq + each}'")
    check_quiet(browser)


async def test_every_kind_is_in_the_file(
    kinds_store: Path, tmp_path: Path, browser: Browser
) -> None:
    """And large bodies are there by their size alone."""
    file = tmp_path / "every.html"
    export(kinds_store, EVERY, file)
    assert file.stat().st_size <= MOST_BYTES
    await browser.go(file.as_uri())
    await browser.find("heading", f"^{EVERY}$")
    await browser.focus("slider", "^Time$")
    await browser.press("Home")
    each = 1 if FULL else 9
    for seq in range(1, len(PLAN), each):
        await browser.find("heading", rf"^{seq}\b")
        await browser.run(f"location.hash = '#{seq + each}'")
    check_quiet(browser)


def test_no_secret_is_in_the_file(tmp_path: Path) -> None:
    """Not even one that was recorded before its rule was there."""
    secret = "sk-proj-" + "a1B2c3D4" * 6
    tape = Tape("leak")
    tape.model(chat([said("user", f"The key is {secret}.")]), chat_answer("I see."))
    store = write_store(tmp_path / "store", lambda store: write_run(store, "leak", tape.exchanges))
    file = tmp_path / "leak.html"
    export(store, "leak", file)
    assert secret not in file.read_text("utf-8")
    assert secret.encode() not in file.read_bytes()


def test_what_is_a_secret_by_now_is_in_no_part_of_the_file(
    refund_store: Path, tmp_path: Path
) -> None:
    """Neither in steps nor in the receipt that is signed, with its effects, URLs and divergences; the signature holds."""
    config, file = tmp_path / "f.yaml", tmp_path / "refund.html"
    config.write_text(f"store: {refund_store}\nredact:\n  - {{pattern: 'ch_[0-9A-Za-z]+'}}\n")
    plain = tmp_path / "plain.html"
    export(refund_store, RUN, plain)
    assert re.search(r"\bch_[0-9A-Za-z]+", plain.read_text("utf-8").rpartition('id="receipt"')[2])
    done = playhead("export", RUN, "--html", file, "-c", config)
    assert done.returncode == 0, done.stderr
    known = {*re.findall(r"\bch_[0-9A-Za-z]+", plain.read_text("utf-8"))}
    assert not [one for one in known if one in file.read_text("utf-8")]
    key = _KEY.search(done.stdout)
    assert key is not None
    verified = playhead("verify", "--receipt", file, "--key", key[0])
    assert verified.returncode == 0, verified.stderr


def test_an_export_that_cannot_be_is_explained(refund_store: Path, tmp_path: Path) -> None:
    """Nothing is overwritten, and half a file is not left."""
    store, file = refund_store, tmp_path / "refund.html"
    export(store, RUN, file)
    before = file.read_bytes()
    wrong = {
        (RUN, "--html", str(file)): "refund.html",
        ("refnud", "--html", str(tmp_path / "a.html")): "refund",
        (RUN, "--html", str(tmp_path / "no" / "a.html")): "no",
        (RUN, "--html", str(tmp_path)): "",
        (RUN, "--html", str(tmp_path / "b.html"), "--tape", str(tmp_path / "b.tape")): "--tape",
        (RUN,): "--html",
    }
    for words, said_of_it in wrong.items():
        done = playhead("export", *words, "--store", store)
        assert done.returncode == 2, words
        assert said_of_it in done.stderr
        assert "Traceback" not in done.stderr
    assert file.read_bytes() == before
    assert sorted(path.name for path in tmp_path.glob("*.html")) == ["refund.html"]


@pytest.mark.skipif(not FULL, reason="Firefox takes long to start: PLAYHEAD_FULL=1")
async def test_firefox_opens_it_too(refund_store: Path, tmp_path: Path) -> None:
    """Debian's, from disk and without a network: the cause is as many clicks away, and its policy refuses nothing."""
    file = tmp_path / "refund.html"
    export(refund_store, RUN, file)
    async with Firefox.open(tmp_path / "profile") as firefox:
        await firefox.go(file.as_uri())
        assert await firefox.run("document.querySelector('h1').innerText") == RUN
        step = "document.getElementById('step-title').innerText"
        for click in (
            f"#effects a[data-seq='{DUPLICATE}']",
            "[data-cause$=' form amount']",
            f"#cause .bad a[data-seq^='{CAUSE}']",
        ):
            clicked = f'document.querySelector("{click}").click()'
            await firefox.run(f"{clicked}; new Promise(requestAnimationFrame)")
        assert (await firefox.run(step)).startswith(f"{CAUSE} ")
        assert "client left after 1.0 s" in await firefox.run("document.body.innerText")
        assert await firefox.run("document.getElementById('canvas').width > 300") is True
