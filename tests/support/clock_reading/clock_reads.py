"""An agent that puts all it can find of time and chance into what it says: one JSON list on stdout.

Runs under any Python from 3.8 on. `ORIGIN` in the environment: each part is asked of it too.
"""

import asyncio
import concurrent.futures
import datetime
import json
import os
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid

said = []


def say(name, value):
    said.append([name, repr(value)])
    if "ORIGIN" in os.environ:
        url = os.environ["ORIGIN"] + "/say"
        body = json.dumps([name, repr(value)]).encode()
        with urllib.request.urlopen(url, body, timeout=20) as answer:
            answer.read()


def look():
    return time.time_ns(), random.random(), uuid.uuid4().hex[:8], os.urandom(3).hex()


def alone():
    aware = datetime.datetime.now(datetime.timezone.utc)
    say("time", [time.time(), time.time_ns(), time.clock_gettime(time.CLOCK_REALTIME)])
    say("tuples", [time.localtime(), time.gmtime(), time.ctime(), time.asctime()])
    say("strftime", time.strftime("%Y-%m-%d %H:%M:%S"))
    naive = [datetime.datetime.now(), datetime.datetime.utcnow(), datetime.datetime.today()]
    say("datetime", [*naive, aware])
    say("date", datetime.date.today())
    say("uuid", [uuid.uuid4(), uuid.uuid1()])
    say("random", [random.random(), random.choice("abcdef"), random.Random().random()])
    say("kernel", [os.urandom(8), os.getrandom(8), random.SystemRandom().random()])
    say("secrets", [secrets.token_hex(8), secrets.token_urlsafe(8), secrets.randbelow(10**6)])
    say("set", list({"alpha", "beta", "gamma", "delta"}))
    say("tempfile", next(tempfile._get_candidate_names()))


def in_threads():
    found = {}

    def work(number):
        for _ in range(3):
            found.setdefault(number, []).append(look())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    threads += [threading.Thread(target=work, args=(number,), name="same") for number in (3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say("threads", sorted(found.items()))


def in_jobs():
    def work(wait_s):
        time.sleep(wait_s)
        return look()

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        say("jobs", list(pool.map(work, waits())))


def waits():
    # How long is neither recorded nor repeated, and must not matter.
    return [(time.perf_counter_ns() * prime) % 7 / 1000 for prime in (3, 5, 11, 13)]


def in_tasks():
    async def work(wait_s):
        first = look()
        await asyncio.sleep(wait_s)
        return first, look()

    async def fan_out():
        return await asyncio.gather(*map(work, waits()))

    say("tasks", asyncio.run(fan_out()))


def in_children():
    receiver, sender = os.pipe()
    child = os.fork()
    if not child:
        os.write(sender, repr(look()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    say("fork", os.read(receiver, 1000))
    program = [sys.executable, "-c", "import uuid, time; print(time.time(), uuid.uuid4())"]
    for environ in (None, {}, {"PYTHONHASHSEED": "7"}):
        say("child", subprocess.run(program, env=environ, stdout=subprocess.PIPE).stdout)


if __name__ == "__main__":
    alone()
    in_threads()
    in_jobs()
    in_tasks()
    in_children()
    print(json.dumps(said))
