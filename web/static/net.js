// What the modules have in common: asking the server, and noticing that it does not answer.

const PATIENCE_MS = 4500, EVERY_MS = 500, GONE_MS = 2000, HIDDEN_MS = 10_000, ANSWER_MS = 20_000, RETRY_MS = 3000;

// A request that was under way when the server could not be reached may hang for ever: it is given up once the server answers again.
let reached = new AbortController();

export class Refused extends Error {
  constructor(text, status) { super(text); this.status = status; }
}

async function told(answer) {
  if (answer.ok) return answer;
  let text = answer.statusText || String(answer.status);
  if ((answer.headers.get("content-type") || "").startsWith("application/json")) {
    const said = await answer.json();
    text = [said.error, said.expected && `expected ${said.expected}`, said.found && `found ${said.found}`, said.hint].filter(Boolean).join("; ");
  }
  throw new Refused(text, answer.status);
}

export async function data(path, signal) {
  return (await told(await fetch(path, { cache: "no-store", signal }))).json();
}

// A part of a page: the server has made text of whatever was recorded, so it is markup of ours alone.
export async function part(path, signal) {
  const text = await (await told(await fetch(path, { cache: "no-store", signal }))).text();
  const holder = document.createElement("template");
  holder.innerHTML = text;
  return holder.content;
}

export async function change(path, body) {
  const answer = await fetch(path, {
    method: "POST", cache: "no-store",
    headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  });
  return (await told(answer)).json();
}

// Watch what changes; say so where the server has gone or hangs, and keep anybody from changing anything meanwhile. It is asked for
// again and again: a stream would keep one of the six connections that a browser has to one server, and the seventh tab would wait.
export function watch(query, handlers) {
  let heard = performance.now(), gone = 0, asking = false, asked = 0;
  const banner = document.getElementById("gone"), held = document.getElementById("held"), last = {};
  const shown = document.title.replace(/^\(\d+\) /, "");

  function hear() {
    heard = performance.now();
    document.body.dataset.watched = "yes";
    if (!gone) return;
    gone = 0;
    banner.hidden = true;
    banner.textContent = "";
    reached.abort();
    reached = new AbortController();
    delete document.body.dataset.gone;
    for (const one of document.querySelectorAll("[data-gone-off]")) { one.disabled = false; delete one.dataset.goneOff; }
  }

  function count(number) {
    held.textContent = String(number);
    held.hidden = !number;
    document.title = number ? `(${number}) ${shown}` : shown;
  }

  async function ask() {
    if (asking) return;
    asking = true;
    asked = performance.now();
    let told = {};
    try { told = await data("/data/now" + query, AbortSignal.timeout(PATIENCE_MS)); hear(); }
    catch (error) { if (error instanceof Refused && error.status !== 401) hear(); }
    asking = false;
    for (const [name, value] of Object.entries(told)) {
      const text = JSON.stringify(value), before = last[name];
      if (before === text) continue;
      last[name] = text;
      if (name === "gate") count(value.held);
      handlers[name]?.(value);
    }
    if (told.run) handlers.now?.(told);
  }

  function tick() {
    const every = document.hidden ? HIDDEN_MS : gone ? GONE_MS : EVERY_MS;
    if (performance.now() - asked >= every) ask();
    if (document.hidden) return;
    const silent = performance.now() - heard;
    if (silent < PATIENCE_MS) return;
    if (!gone) gone = Date.now() - silent;
    banner.hidden = false;
    document.body.dataset.gone = "yes";
    const since = new Date(gone).toLocaleTimeString();
    const text = `Playhead does not answer since ${since}. If it has ended, start it again: playhead ui`;
    if (banner.textContent !== text) banner.textContent = text;
    for (const one of document.querySelectorAll("[data-act], [data-changes]"))
      if (!one.disabled) { one.disabled = true; one.dataset.goneOff = "yes"; }
  }

  document.addEventListener("visibilitychange", () => { if (!document.hidden) { heard = performance.now(); ask(); } });
  ask();
  setInterval(tick, 250);
}

// Bring what is shown to what the server has. A version names all that is shown; `first` is the one that the page came with, and `bring`
// asks for it anew. It is asked for until an answer that was begun under the version that was told last has been put in place: whatever
// changes while one is under way, fails or hangs is not missed.
export function follow(first, every, bring) {
  let has = first, round = 0, timer = 0, ended = -Infinity, failed = false;
  const one = {
    wanted: first,
    told(version) { one.wanted = version; soon(); },
    // What was put in place meanwhile may be older than what was brought.
    again() { round += 1; has = undefined; soon(); },
  };
  function soon() {
    if (timer || has === one.wanted) return;
    const pause = failed ? RETRY_MS : every();
    timer = setTimeout(async () => {
      const going = one.wanted, mine = round;
      try {
        await bring(AbortSignal.any([reached.signal, AbortSignal.timeout(ANSWER_MS)]));
        if (mine === round) has = going;
        failed = false;
      } catch (error) { failed = error.name !== "AbortError"; }
      ended = performance.now();
      timer = 0;
      soon();
    }, Math.max(0, pause - (performance.now() - ended)));
  }
  return one;
}

export const quoted = encodeURIComponent;

// Write the name of a run as a segment of a path: a browser takes dots out of it, as web/views/addresses.py says.
export const segment = (name) => /^~*\.{1,2}$/.test(name) ? `~${name}` : encodeURIComponent(name);

export function number(count) { return count.toLocaleString("en"); }

// As `show` writes it.
export function took(us) {
  if (us < 0) return "";
  if (us < 1000) return `${Math.round(us)} µs`;
  if (us < 1e6) return `${Math.round(us / 1000)} ms`;
  const s = us / 1e6;
  if (s < 60) return `${s.toFixed(1)} s`;
  const minutes = Math.floor(Math.round(s) / 60), two = (count) => String(count).padStart(2, "0");
  if (minutes < 60) return minutes < 10 ? `${minutes} min ${two(Math.round(s) % 60)} s` : `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}
