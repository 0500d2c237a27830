"""Sleeps kept short in a replay: what the program finds is what it found, in a fraction of the time."""

import sys
import textwrap

from playhead.tests.support.needs import need
from playhead.tests.support.preload_bundles import Ran, again, new_kit, run

PYTHON = """
    import asyncio, json, threading, time
    said = []
    began = time.time()
    deadline, rounds = time.monotonic() + 30, 0
    while time.monotonic() < deadline and rounds < 50:
        rounds += 1
        time.sleep(1)
    said.append([rounds, time.time() - began > 1])

    async def work(name, delay):
        await asyncio.sleep(delay)
        said.append([name])

    async def main():
        await asyncio.gather(work("late", 90), work("early", 30), work("at once", 0))
        said.append([await asyncio.sleep(5, "given")])
    asyncio.run(main())

    event = threading.Event()
    before = time.perf_counter()
    said.append([event.wait(0.05), 0.05 <= time.perf_counter() - before < 5])
    for wrong in (-1, "1", float("nan")):
        try: time.sleep(wrong)
        except (ValueError, TypeError) as error: said.append([type(error).__name__])
    print(json.dumps(said))
"""
NODE = """
    const http = require('http'), timers = require('timers/promises'), { promisify } = require('util');
    const said = [];
    const sleep = (ms, name) => new Promise((done) => setTimeout(() => { said.push([name]); done(); }, ms));
    async function main() {
      await Promise.all([sleep(90e3, 'late'), sleep(30e3, 'early'), timers.setTimeout(60e3).then(() => said.push(['between']))]);
      said.push([await timers.setTimeout(40e3, 'given'), await promisify(setTimeout)(40e3, 'promised')]);
      const stop = new AbortController();
      setTimeout(() => stop.abort(), 10e3);
      await timers.setTimeout(20e3, 0, { signal: stop.signal }).catch((error) => said.push([error.name]));
      const cleared = setTimeout(() => said.push(['never']), 5e3);
      clearTimeout(cleared);
      // A timeout: something else is under way, and comes first.
      const server = http.createServer((_, answer) => sleep(20, 'served').then(() => answer.end('x'))).listen(0, '127.0.0.1');
      await new Promise((done) => server.on('listening', done));
      const over = setTimeout(() => said.push(['timed out']), 60e3);
      await new Promise((done) => http.get(`http://127.0.0.1:${server.address().port}`, { agent: false }, (answer) => answer.resume().on('end', done)));
      clearTimeout(over);
      server.close();
      console.log(JSON.stringify(said));
    }
    main();
"""
BUSY_NODE = """
    const timers = require('timers/promises'), said = [], list = process.getActiveResourcesInfo;
    // On a busy machine a look at what is under way may take longer than the time between two of them.
    process.getActiveResourcesInfo = () => {
      const end = performance.now() + 5;
      while (performance.now() < end);
      return list.call(process);
    };
    const first = new Promise((done) => setTimeout(() => { said.push(['first']); done(); }, 10e3));
    const second = timers.setTimeout(20e3).then(() => said.push(['second']));
    Promise.all([first, second]).then(() => console.log(JSON.stringify(said)));
"""


def short(command: str, *arguments: str) -> Ran:
    """Run a program whose sleeps are kept short. Were they not, it would take minutes, and be killed."""
    return run(again(new_kit(), [], short_sleeps=True), command, *arguments)


def test_a_python_program_sleeps_a_thousandth_and_finds_it_as_late() -> None:
    """Loops go round as often, tasks wake in their order, waits for something stay real."""
    ran = short(sys.executable, "-c", textwrap.dedent(PYTHON))
    assert ran.err == ""
    assert int(ran.said[0][0]) == 30
    assert [row[0] for row in ran.said[1:5]] == ["at once", "early", "late", "given"]
    assert ran.said[5:] == [[False, True], ["ValueError"], ["TypeError"], ["ValueError"]]
    assert ran.told["problems"] == []


def test_a_node_program_sleeps_while_nothing_is_under_way() -> None:
    """Timers come in their order; a timeout of something that is under way never comes early."""
    node = need("node")
    ran = short(node, "-e", NODE)
    assert ran.err == ""
    said = [row[0] for row in ran.said]
    assert said == ["early", "between", "late", "given", "AbortError", "served"]
    assert ran.told["problems"] == []


def test_timers_of_node_come_in_their_order_on_a_busy_machine() -> None:
    """The next is not woken before the one that was woken last has come."""
    ran = short(need("node"), "-e", BUSY_NODE)
    assert [row[0] for row in ran.said] == ["first", "second"]
    assert ran.told["problems"] == []


def test_sleeps_stay_real_unless_declared() -> None:
    """The control: the same preload, and nothing of it."""
    program = (
        "import time; before = time.monotonic(); time.sleep(0.05); print(time.monotonic() - before)"
    )
    ran = run(again(new_kit(), []), sys.executable, "-c", program)
    assert 0.05 <= float(ran.out) < 10
