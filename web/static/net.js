// What the modules have in common: asking the server, and noticing that it does not answer.

const PATIENCE_MS = 4500, EVERY_MS = 500, GONE_MS = 2000, HIDDEN_MS = 10_000;

export class Refused extends Error {
  constructor(text, status) { super(text); this.status = status; }
}

async function told(answer) {
  if (answer.ok) return answer;
  let text = answer.statusText || String(answer.status);
  if ((answer.headers.get("content-type") || "").startsWith("application/json")) {
    const said = await answer.json();
    text = [said.error, said.found && `found ${said.found}`, said.hint].filter(Boolean).join("; ");
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
      if (name !== "run" || before !== undefined) handlers[name]?.(value);
    }
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

export const quoted = encodeURIComponent;

export function number(count) { return count.toLocaleString("en"); }

export function took(us) {
  if (us < 0) return "";
  if (us < 1000) return `${Math.round(us)} µs`;
  if (us < 1e6) return `${Math.round(us / 1000)} ms`;
  const s = us / 1e6;
  if (s < 60) return `${s.toFixed(1)} s`;
  return s < 3600 ? `${Math.floor(s / 60)} min` : `${Math.floor(s / 3600)} h`;
}
