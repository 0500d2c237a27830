// A run: one place in it, which the strip, the scrubbers, the list and what is shown of a step have in common.

import { change, data, follow, number, part, quoted, segment, took, watch } from "./net.js";
import { Strip } from "./strip.js";
import { size } from "./styles.js";
import { Windows } from "./windows.js";

const $ = (id) => document.getElementById(id);
const root = $("run"), run = root.dataset.run, path = root.dataset.path, parts = `/parts${path}`, facts = `/data${path}`;
const HEIGHT = 24, OF = ["kind", "lane", "effects"];
let total = Number(root.dataset.total), position = Math.min(Number(root.dataset.position), total), seq = 0, name = "";
let loading = null, later = 0, back = null, awaited = null;
// Whether the page goes on with a run that is being recorded: where no step is asked for, until somebody looks at another one.
let following = root.dataset.status === "open" && !new URLSearchParams(location.search).has("seq");

const windows = new Windows(run, (told) => { grow(told.total); render(); settle(); }, () => drawnNow.again());
windows.total = total;
const strip = new Strip(run, $("canvas"), $("gaps"), $("lane-names"), (place) => pointed(place));

// ---- the place -------------------------------------------------------------------------------

function go(to, { now = false, follow = false } = {}) {
  position = Math.min(Math.max(1, to), Math.max(1, total));
  following = follow && root.dataset.status === "open";
  const row = windows.row(position);
  if (row) { seq = row.seq; name = String(row.seq); }
  mark();
  reveal();
  render();
  windows.around(position);
  awaited = row ? null : { position, now };
  if (row) show(now);
}

// Show the step that was gone to before its line had come, however often that was asked for.
function settle() {
  const row = windows.row(position);
  if (!row) return;
  if (awaited?.position === position) {
    const { now } = awaited;
    awaited = null; seq = row.seq; name = String(seq);
    show(now);
  }
  mark();
}

async function goSeq(text, focus = true, keep = true) {
  if (keep && String(text) !== name) history.pushState(null, "", location.href);
  const wanted = Number(String(text).split(".")[0]);
  let at = windows.find(wanted)?.position;
  if (!at) {
    try { at = (await data(`${facts}/moves?of=time&seq=${wanted}&go=${"same"}`)).at; } catch (error) { return say(error.message); }
  }
  position = at; seq = wanted; name = String(text); awaited = null;
  following = false;
  mark(); reveal(); render(); windows.around(position);
  await show(true, focus);
}

function mark() {
  const row = windows.row(position);
  $("place").replaceChildren();
  const strong = document.createElement("b");
  strong.textContent = row ? String(row.seq) : "…";
  $("place").append(strong, ` of ${number(total)}`);
  const time = $("scrub-time");
  if (Number(time.max) !== Math.max(total, 1)) time.max = String(Math.max(total, 1));
  if (Number(time.value) !== position) time.value = String(position);
  if (!row) return;
  const text = `step ${row.seq} of ${total}: ${row.title || row.kind}`;
  time.setAttribute("aria-valuetext", text);
  for (const of of OF) {
    const slider = $(`scrub-${of}`), told = row.moves[of];
    slider.disabled = !told.of_total;
    slider.max = String(Math.max(told.of_total, 1));
    slider.value = String(told.position ?? Math.max(1, told.before));
    slider.setAttribute("aria-valuetext", text);
    const count = `${number(told.of_total)}${told.complete ? "" : "…"}`;
    $(`of-${of}`).textContent = told.of_total || !told.complete ? `${told.position ?? "–"} of ${count}` : "none";
  }
  $("before-effect").disabled = row.before === null;
  $("before-effect").title = row.effect && row.before === null ? none(row) : "";
  $("previous").disabled = position <= 1;
  $("next").disabled = position >= total;
  strip.move(strip.axis === "steps" ? (position - 0.5) / Math.max(total, 1) : row.place[0]);
  strip.follow(strip.cursor);
}

function grow(to) {
  if (to === total) return;
  total = to;
  windows.total = to;
  if (following && total) go(total, { follow: true }); else mark();
}

async function move(of, where) {
  const row = windows.row(position);
  if (row && windows.state.logged && (where === "previous" || where === "next")) {
    const at = row.moves[of][`${where}_at`];
    if (at) go(at);
    return;
  }
  try {
    const told = await data(`${facts}/moves?of=${of}&seq=${seq}&go=${where}`);
    if (told.at) go(told.at);
  } catch (error) { say(error.message); }
}

let pointing = 0;
async function pointed(place) {
  const mine = ++pointing;
  if (strip.axis === "steps") return go(Math.ceil(place * total));
  try {
    const told = await data(`${facts}/place?at=${place}`);
    if (mine === pointing) go(told.position);
  } catch (error) { say(error.message); }
}

// What there is to be said of an effect that no model call came before, as `playhead rewind` says it.
function none(row) { return row.read ? "No model call came before it" : "Not read yet: whether a model call came before it"; }

function beforeEffect() {
  const row = windows.row(position);
  if (!row?.effect) return;
  if (row.before === null) say(none(row)); else goSeq(row.before, false);
}

// ---- the list --------------------------------------------------------------------------------

const list = $("list"), lines = $("lines");
const pool = [];
let frame = 0;

function reveal() {
  const top = (position - 1) * HEIGHT, height = list.clientHeight;
  if (top < list.scrollTop) list.scrollTop = top - 2 * HEIGHT;
  else if (top + HEIGHT > list.scrollTop + height) list.scrollTop = top - height + 3 * HEIGHT;
}

function line() {
  const item = document.createElement("div");
  item.setAttribute("role", "option");
  const pieces = ["seq", "dot", "title", "right"].map((kind) => {
    const piece = document.createElement(kind === "dot" ? "i" : "span");
    piece.className = kind;
    return piece;
  });
  item.append(...pieces);
  item.pieces = pieces;
  return item;
}

function render() {
  const height = list.clientHeight || 400, first = Math.max(1, Math.floor(list.scrollTop / HEIGHT) - 8);
  const last = Math.min(total, first + Math.ceil(height / HEIGHT) + 16);
  size("#pad-top", "height", `${(first - 1) * HEIGHT}px`);
  size("#pad-bottom", "height", `${Math.max(0, total - last) * HEIGHT}px`);
  const count = Math.max(0, last - first + 1);
  while (pool.length < count) pool.push(line());
  for (let at = 0; at < count; at++) fill(pool[at], first + at);
  if (lines.children.length !== count || lines.firstElementChild !== pool[0]) lines.replaceChildren(...pool.slice(0, count));
  // The chosen line is there for assistive technology while it is in the document.
  if (position >= first && position <= last) list.setAttribute("aria-activedescendant", `line-${position}`);
  else list.removeAttribute("aria-activedescendant");
}

function fill(item, at) {
  const row = windows.row(at), chosen = at === position;
  const key = row ? `${at} ${row.read} ${chosen}` : `${at} ? ${chosen}`;
  if (item.key === key && item.row === row) return;
  item.key = key; item.row = row;
  item.id = `line-${at}`;
  item.setAttribute("aria-selected", chosen ? "true" : "false");
  item.setAttribute("aria-posinset", String(at));
  item.setAttribute("aria-setsize", String(total));
  item.dataset.position = String(at);
  const [seqs, dot, title, right] = item.pieces;
  if (!row) {
    item.className = "line"; seqs.textContent = ""; dot.className = "dot"; title.textContent = "…"; right.textContent = "";
    return;
  }
  item.dataset.seq = String(row.seq);
  item.className = "line" + (row.effect ? " effect" : "") + (row.failed ? " failed" : "") + (row.duplicate ? " duplicate" : "");
  seqs.textContent = String(row.seq);
  dot.className = `dot ${row.kind.replace(" ", "-")}${row.effect ? " is-effect" : ""}`;
  title.textContent = (row.title || row.kind) + (row.more ? ` (+${row.more})` : "") + (row.said ? ` ${row.said}` : "");
  right.textContent = (row.lane ? `${row.lane} · ` : "") + took(row.took_us);
}

list.addEventListener("scroll", () => { if (!frame) frame = requestAnimationFrame(() => { frame = 0; render(); }); }, { passive: true });
lines.addEventListener("click", (event) => {
  const item = event.target.closest("[data-position]");
  if (item) go(Number(item.dataset.position), { now: true });
});

// ---- what is at the step ---------------------------------------------------------------------

let shown = $("step")?.dataset.seq || "";

function show(now, focus = false) {
  if (shown === name && !focus) return Promise.resolve();
  clearTimeout(later);
  loading?.abort();
  return new Promise((done) => {
    later = setTimeout(async () => {
      loading = new AbortController();
      const wanted = name, version = shownNow.wanted, view = new URLSearchParams(location.search).get("view");
      try {
        const fresh = await part(`${parts}/step?seq=${quoted(wanted)}${view ? "&view=raw" : ""}`, loading.signal);
        put(fresh, wanted, focus);
        if (version !== shownNow.wanted) shownNow.again();
      } catch (error) { if (error.name !== "AbortError") say(error.message); }
      done();
    }, now ? 0 : 90);
  });
}

function put(fresh, wanted, focus) {
  const place = $("at-step"), inside = place.contains(document.activeElement);
  came = written(fresh);
  place.replaceChildren(fresh);
  shown = wanted;
  address();
  if ($("step") && !$("cause").hidden && $("cause").dataset.of !== wanted && !back?.keep) closeCause(false);
  if (focus || inside) $("step-title")?.focus({ preventScroll: inside });
}

function address(more = {}) {
  const given = new URLSearchParams();
  given.set("seq", name || String(seq));
  const view = new URLSearchParams(location.search).get("view");
  if (view && more.view === undefined) given.set("view", view);
  for (const [key, value] of Object.entries(more)) if (value) given.set(key, value);
  history.replaceState(null, "", `${path}?${given}`);
}

async function openCause(button) {
  const given = button.dataset.path, side = given.startsWith("answer ") ? "answer" : "request";
  const place = side === "answer" ? given.slice(7) : given;
  try {
    const fresh = await part(`${parts}/cause?seq=${quoted(shown)}&side=${side}&path=${quoted(place)}`);
    $("cause").replaceChildren(fresh);
    $("cause").hidden = false;
    $("cause").dataset.of = shown;
    back = { path: given };
    address({ side: side === "answer" ? side : "", path: place });
    $("cause").focus();
    $("cause").scrollIntoView({ block: "nearest" });
  } catch (error) { say(error.message); }
}

function closeCause(focus = true) {
  $("cause").hidden = true;
  $("cause").replaceChildren();
  if (!focus) return;
  address();
  const button = back && [...document.querySelectorAll("button.value")].find((one) => one.dataset.path === back.path);
  (button || $("step-title"))?.focus();
}

async function tab(which) {
  const raw = which === "raw";
  for (const one of ["readable", "raw"]) {
    const on = one === which;
    $(`tab-${one}`).setAttribute("aria-selected", on ? "true" : "false");
    $(`tab-${one}`).tabIndex = on ? 0 : -1;
    $(`panel-${one}`).hidden = !on;
  }
  $(`tab-${which}`).focus();
  address({ view: raw ? "raw" : "" });
  if (!raw) shownNow.again();
  if (raw && !$("panel-raw").childElementCount) await further(`seq=${quoted(shown)}`);
}

async function further(query) {
  try { $("panel-raw").replaceChildren(await part(`${parts}/raw?${query}`)); } catch (error) { say(error.message); }
}

document.addEventListener("click", async (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  const target = event.target;
  const value = target.closest("button.value");
  if (value) return openCause(value);
  if (target.closest("#close-cause")) return closeCause();
  const tabbed = target.closest("[role=tab]");
  if (tabbed) return tab(tabbed.id.slice(4));
  const raw = target.closest("a[data-raw]");
  if (raw) { event.preventDefault(); return further(`seq=${quoted(shown)}&${raw.dataset.raw}_from=${raw.dataset.from}`); }
  const earlier = target.closest("a[data-context]");
  if (earlier) {
    event.preventDefault();
    put(await part(`${parts}/step?seq=${quoted(shown)}&context_from=${earlier.dataset.context}`), shown, false);
    earlierOf = [shown, earlier.dataset.context];
    document.querySelector("[aria-label=Context]").scrollIntoView();
    return;
  }
  const link = target.closest("a[data-seq]");
  if (link) {
    event.preventDefault();
    const asked = new URL(link.href).searchParams;
    await goSeq(link.dataset.seq);
    if (asked.get("path")) {
      const wanted = (asked.get("side") === "answer" ? "answer " : "") + asked.get("path");
      const found = [...document.querySelectorAll("button.value")].find((one) => one.dataset.path === wanted);
      found?.scrollIntoView({ block: "center" });
    }
    return;
  }
  const load = target.closest("button.load");
  if (load) return read(load.parentElement);
});

async function read(place) {
  place.textContent = "…";
  try { await fetchPart(place); } catch (error) { place.textContent = error.message; }
}

async function fetchPart(place, signal) {
  const mine = place.asked = (place.asked || 0) + 1, of = logged;
  const fresh = await part(`${parts}/${place.dataset.part}`, signal);
  if (mine !== place.asked) return; // a newer one was asked for
  fillIn(place, fresh);
  place.of = of;
}

function fillIn(place, fresh) {
  const divergences = fresh.querySelector("#divergences-of-receipt");
  if (divergences) { $("divergences").replaceChildren(divergences.content); divergences.remove(); }
  place.replaceChildren(fresh);
}

// ---- keys ------------------------------------------------------------------------------------

const LETTERS = { e: ["effects", "next"], E: ["effects", "previous"], k: ["kind", "next"], K: ["kind", "previous"], l: ["lane", "next"], L: ["lane", "previous"] };
const STEPS = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10 };
const SLIDES = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: -10, PageDown: 10 };

function letter(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  if (event.key === "b") { beforeEffect(); return true; }
  const told = LETTERS[event.key];
  if (told) move(...told);
  return Boolean(told);
}

list.addEventListener("keydown", (event) => {
  let done = true;
  if (event.key in STEPS) go(position + STEPS[event.key]);
  else if (event.key === "Home") go(1);
  else if (event.key === "End") go(total, { follow: true });
  else if (event.key === "Enter") show(true, true);
  else done = letter(event);
  if (done) event.preventDefault();
});

const scrubbers = document.querySelector(".scrubbers");
scrubbers.addEventListener("keydown", (event) => {
  const of = event.target.id.startsWith("scrub-") ? event.target.id.slice(6) : "";
  let done = false;
  if (of) {
    const by = SLIDES[event.key];
    const ends = { Home: "first", End: "last" }[event.key];
    done = Boolean(by || ends);
    if (of === "time") { if (by) go(position + by); else if (ends) go(ends === "first" ? 1 : total, { follow: ends === "last" }); }
    else if (ends) move(of, ends);
    else if (by === 1 || by === -1) move(of, by > 0 ? "next" : "previous");
    else if (by) move(of, Math.max(1, Number(event.target.value) + by));
    if (event.key === "Enter") { show(true); done = true; }
  }
  if (!done) done = letter(event);
  if (done) event.preventDefault();
});
$("scrub-time").addEventListener("input", (event) => go(Number(event.target.value)));
for (const of of OF) $(`scrub-${of}`).addEventListener("input", (event) => move(of, Number(event.target.value)));
$("previous").addEventListener("click", () => go(position - 1));
$("next").addEventListener("click", () => go(position + 1));
$("before-effect").addEventListener("click", beforeEffect);

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !$("cause").hidden) { closeCause(); event.preventDefault(); }
  else if (event.key === "Escape" && event.target.id === "step-title") list.focus();
  const tabbed = event.target.closest?.("[role=tab]");
  if (tabbed && ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) {
    tab(tabbed.id === "tab-raw" ? "readable" : "raw");
    event.preventDefault();
  }
});

$("axis").addEventListener("click", (event) => {
  strip.axis = strip.axis === "time" ? "steps" : "time";
  event.target.setAttribute("aria-pressed", strip.axis === "steps" ? "true" : "false");
  strip.begin = 0; strip.end = 1;
  strip.load().then(mark);
});
$("zoom-in").addEventListener("click", () => strip.zoom(0.5));
$("zoom-out").addEventListener("click", () => strip.zoom(2));

// ---- running again ---------------------------------------------------------------------------

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-again]");
  if (!form) return;
  event.preventDefault();
  const edit = form.querySelector(".edit:not([hidden])"), what = edit.dataset.what;
  const output = form.querySelector("output"), button = form.querySelector("button[type=submit]");
  if (edit.querySelector("[data-load]")) { output.textContent = "Nothing is edited yet."; return; }
  button.disabled = true;
  output.textContent = "It begins …";
  try {
    const begun = await change(`${facts}/branch`, { at: Number(form.dataset.again), [what]: edit.querySelector("textarea").value });
    for (;;) {
      await new Promise((done) => setTimeout(done, 500));
      const told = await data(`${facts}/attempts?number=${begun.number}`);
      output.textContent = told.output;
      if (told.code === null) continue;
      if (told.run) location.href = `/diff/${segment(run)}/${segment(told.run)}`;
      else output.textContent += `\nIt ended with ${told.code}.`;
      break;
    }
  } catch (error) { output.textContent = error.message; }
  button.disabled = false;
});

// A long text comes once somebody wants to edit it.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-load]");
  if (!button) return;
  const form = button.closest("form"), box = button.parentElement.querySelector("textarea");
  button.disabled = true;
  try {
    box.value = (await data(`${facts}/steps/${form.dataset.again}/edit?what=${button.dataset.load}`)).text;
    box.hidden = false;
    box.focus();
    button.remove();
  } catch (error) { form.querySelector("output").textContent = error.message; button.disabled = false; }
});

// ---- what changes meanwhile ------------------------------------------------------------------

addEventListener("popstate", () => {
  const wanted = new URLSearchParams(location.search).get("seq");
  if (wanted) goSeq(wanted, false, false);
});

document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-again]");
  if (!form || event.target.tagName !== "SELECT") return;
  for (const one of form.querySelectorAll(".edit")) one.hidden = one.dataset.what !== event.target.value;
});

function say(text) { $("live").textContent = text; }

// Of a long run little changes in a second, and what changes is asked for in windows and as a whole strip.
const OFTEN_MS = 700, SELDOM_MS = 2500, LONG = 5000;
const drawnNow = follow(root.dataset.complete === "yes" ? root.dataset.revision : "", () => total > LONG ? SELDOM_MS : OFTEN_MS, async () => {
  windows.forget();
  render();
  const drawn = await strip.load();
  mark();
  if (drawn === undefined || !(await windows.come())) throw new Error("not all of it came");
});

// ---- what is out of date ------------------------------------------------------------------

// What is shown beside the lines is the server's answer of a moment: each part is asked for again once the log has gone on, and put in
// place of the old one where it says something else.
const written = (fragment) => { const holder = document.createElement("div"); holder.append(fragment.cloneNode(true)); return holder.innerHTML.trim(); };
let came = $("at-step").innerHTML.trim(), earlierOf = ["", ""];

async function renewStep(signal) {
  // Bytes do not change any more: whoever looks at them, or has begun to meanwhile, is left there.
  const raw = () => new URLSearchParams(location.search).has("view"), wanted = shown;
  if (raw()) return;
  const from = earlierOf[0] === wanted ? `&context_from=${earlierOf[1]}` : "";
  const fresh = await part(`${parts}/step?seq=${quoted(wanted)}${from}`, signal);
  if (raw()) return;
  const place = $("at-step");
  if (shown !== wanted || written(fresh) === came) return;
  if ([...place.querySelectorAll("textarea")].some((one) => one.value !== one.defaultValue)) return;  // somebody writes
  const opened = [...place.querySelectorAll("details[open] > summary")].map((one) => one.textContent);
  const inside = place.contains(document.activeElement);
  came = written(fresh);
  place.replaceChildren(fresh);
  if (inside) $("step-title")?.focus({ preventScroll: true });
  for (const one of place.querySelectorAll("details > summary")) if (opened.includes(one.textContent)) one.parentElement.open = true;
}

async function renewSection(which, signal) {
  const fresh = (await part(`${parts}/${which}`, signal)).querySelector(`#${which}`), old = $(which);
  if (!fresh || fresh.outerHTML === old.outerHTML) return;
  const focused = old.contains(document.activeElement) ? document.activeElement.dataset.seq : "";
  old.replaceWith(fresh);
  if (focused) fresh.querySelector(`[data-seq="${CSS.escape(focused)}"]`)?.focus();
}

async function renewPart(place, signal) {
  if (place.querySelector("button.load") || place.of === logged) return;
  if (root.dataset.quick === "yes" && total <= 1000) return fetchPart(place, signal);
  const button = document.createElement("button");
  button.type = "button";
  button.className = "load";
  button.textContent = `Read ${place.dataset.part} again`;
  place.prepend(button);
}

let logged = "";
const shownNow = follow(root.dataset.version, () => 1000, async (signal) => {
  const places = [...document.querySelectorAll(".part[data-part]")];
  const done = await Promise.allSettled([
    renewSection("summary", signal), renewSection("effects", signal), shown && renewStep(signal), ...places.map((one) => renewPart(one, signal)),
  ]);
  const failed = done.find((one) => one.status === "rejected");
  if (failed) throw failed.reason;
});

watch(`?run=${quoted(run)}`, {
  now: ({ run: told, step }) => {
    root.dataset.status = told.status;
    logged = step && `${told.status} ${step.revision} ${step.complete}`;
    shownNow.told(told.version);
    if (!step) return;
    grow(step.total);
    const text = step.complete || step.read >= step.total ? (told.status === "open" ? "live" : "") : `reading ${number(step.read)} of ${number(step.total)}`;
    if ($("reading").textContent !== text) $("reading").textContent = text;
    if (!step.complete) drawnNow.told(`${step.revision} ${step.read} ${step.logged}`);
    else drawnNow.told(String(step.revision));
  },
});

if (total) {
  const first = $("step")?.dataset.seq || "";
  seq = Number(first.split(".")[0]); name = first;
  const begin = Number(root.dataset.begin);
  size("#pad-top", "height", `${begin * HEIGHT}px`);
  size("#pad-bottom", "height", `${Math.max(0, total - begin - lines.childElementCount) * HEIGHT}px`);
  list.scrollTop = Math.max(0, (position - 1) * HEIGHT - list.clientHeight / 2);
  windows.get(position).then(() => { mark(); render(); });
}
strip.load().then(() => mark());
if (root.dataset.quick === "yes") for (const one of document.querySelectorAll(".part[data-part]")) read(one);
