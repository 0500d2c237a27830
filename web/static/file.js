import { Strip } from "./strip.js";
import { size } from "./styles.js";

const $ = (id) => document.getElementById(id);
const DOC = JSON.parse($("data").textContent);
const STEPS = DOC.steps, BY_SEQ = new Map(STEPS.map((one, at) => [one.seq, at]));
const HEIGHT = 24, OF = ["time", "kind", "lane", "effects"];
const sort = (kind) => (kind === "tool call" ? "model call" : kind);

// What strip.js takes from net.js: here nothing is asked for.
const data = async () => DOC.strip, segment = String;

function make(name, given = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given))
    if (key in made && key !== "list" && key !== "role") made[key] = value; else made.setAttribute(key, value);
  made.append(...inside.filter((one) => one !== null && one !== undefined && one !== ""));
  return made;
}
const section = (label, title, ...inside) => make("section", { "aria-label": label }, make("h2", {}, title), ...inside);
const soft = (text) => make("span", { className: "soft" }, text);
const block = (label, text, left) => make("pre", { role: "group", tabIndex: 0, "aria-label": label }, text, left ? soft(`\n… ${bytesOf(left)} more`) : null);
const text = ([at, left], label) => block(label, DOC.texts[at], left);
const evidence = (word) => make("span", { className: `evidence ${word}` }, word);
const link = (seq, ...inside) => make("a", { href: `#${seq}`, "data-seq": String(seq) }, ...inside);
function bytesOf(bytes) { return bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`; }
function took(us) {
  if (us < 6e7) return us < 0 ? "" : us < 1000 ? `${Math.round(us)} µs` : us < 1e6 ? `${Math.round(us / 1000)} ms` : `${(us / 1e6).toFixed(1)} s`;
  const seconds = Math.round(us / 1e6), minutes = Math.floor(seconds / 60), two = (count) => String(count).padStart(2, "0");
  if (minutes < 60) return minutes < 10 ? `${minutes} min ${two(seconds % 60)} s` : `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

let at = STEPS.length - 1, strip = null, back = null, frame = 0;

function stops(of, here) {
  if (of === "time") return STEPS.map((_, number) => number);
  const fits = { kind: (one) => sort(one.kind) === sort(STEPS[here].kind), lane: (one) => one.lane === STEPS[here].lane, effects: (one) => one.effect }[of];
  return STEPS.flatMap((one, number) => (fits(one) ? [number] : []));
}

function move(of, by) {
  const all = stops(of, at);
  if (!all.length) return;
  const before = all.filter((one) => one < at).length, here = all.includes(at);
  const to = by === "first" ? 0 : by === "last" ? all.length - 1 : by > 0 ? before + (here ? by : by - 1) : before + by;
  // Where nothing is that way, the nearest stop is the other way.
  if (here || (to >= 0 && to < all.length)) go(all[Math.min(Math.max(to, 0), all.length - 1)]);
}

function go(to, focus = false) {
  at = Math.min(Math.max(to, 0), STEPS.length - 1);
  const step = STEPS[at];
  if (!step) return;
  closeCause(false);
  $("place").replaceChildren(make("b", {}, String(step.seq)), ` of ${STEPS.length}`);
  for (const of of OF) {
    const all = stops(of, at), slider = $(`scrub-${of}`);
    slider.max = String(Math.max(all.length, 1));
    slider.value = String(Math.max(1, all.filter((one) => one <= at).length));
    slider.disabled = !all.length;
    if (of !== "time") $(`of-${of}`).textContent = all.length ? `${all.includes(at) ? all.indexOf(at) + 1 : "–"} of ${all.length}` : "none";
    slider.setAttribute("aria-valuetext", `step ${step.seq} of ${STEPS.length}: ${step.title || step.kind}`);
  }
  $("previous").disabled = at === 0;
  $("next").disabled = at === STEPS.length - 1;
  $("before-effect").disabled = step.before === null;
  $("before-effect").title = step.effect && step.before === null ? "No model call came before it" : "";
  strip.move(step.place[0]);
  const list = $("list"), top = at * HEIGHT;
  if (top < list.scrollTop || top + HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top - list.clientHeight / 2;
  rows();
  // While a key is held down, what nobody could read is not made.
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(() => { show(step); if (focus) $("step-title").focus(); });
  if (location.hash !== `#${step.seq}`) history.replaceState(null, "", `#${step.seq}`);
}

function rows() {
  const list = $("list"), first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - 8), last = Math.min(STEPS.length, first + Math.ceil((list.clientHeight || 400) / HEIGHT) + 16);
  size("#pad-top", "height", `${first * HEIGHT}px`);
  size("#pad-bottom", "height", `${(STEPS.length - last) * HEIGHT}px`);
  $("lines").replaceChildren(...STEPS.slice(first, last).map((step, number) => make("div", {
    role: "option", id: `line-${first + number}`, "aria-selected": String(first + number === at), "data-seq": String(step.seq),
    className: `line${step.effect ? " effect" : ""}${step.failed ? " failed" : ""}${step.twice ? " duplicate" : ""}`,
  }, make("span", { className: "seq" }, String(step.seq)), make("i", { className: `dot ${step.kind.replace(" ", "-")}${step.effect ? " is-effect" : ""}` }), make("span", { className: "title" }, `${step.title || step.kind}${step.said ? ` ${step.said}` : ""}`), make("span", { className: "right" }, took(step.took)))));
  if (at >= first && at < last) list.setAttribute("aria-activedescendant", `line-${at}`); else list.removeAttribute("aria-activedescendant");
}

function values(step, side) {
  return make("ul", { className: "values" }, ...side.lines.map(([depth, name, shown, place, kind, left, more]) => {
    if (more) return make("li", { className: "soft" }, `… ${more} more values`);
    const told = DOC.texts[shown], known = DOC.causes[`${step.seq} ${place}`];
    const label = `Origin of ${place.replace(/^\$\./, "")}: ${told}`;
    const value = known ? make("button", { type: "button", className: `value ${kind}`, "data-cause": `${step.seq} ${place}`, "aria-label": label }, told || '""') : make("span", { className: kind ? `value ${kind}` : "sort" }, told || (kind ? '""' : ""));
    return make("li", { className: `d${Math.min(depth, 12)}` }, name ? make("span", { className: "name" }, name) : null, " ", value, left ? soft(` … ${left} more characters`) : null);
  }));
}

function message(step, label, side) {
  if (!side) return make("section", { className: "message", "aria-label": label }, make("h3", {}, label), make("p", { className: "soft" }, `None: ${step.outcome}.`));
  return make("section", { className: "message", "aria-label": label },
    make("h3", {}, label, " ", soft(`${label === "Answer" ? `${side.head}, ` : ""}${bytesOf(side.bytes)}`)),
    side.told.length ? fields(side.told, "told") : null,
    side.note ? make("p", { className: "soft" }, side.note) : null,
    side.lines ? values(step, side) : null,
    side.text ? text(side.text, `${label} body`) : null,
    side.pieces ? make("details", {}, make("summary", {}, `${side.pieces.length} pieces as they came`), make("ol", { className: "pieces", tabIndex: 0, "aria-label": "Pieces" }, ...side.pieces.flatMap(([when, bytes, pause]) => [
      pause ? make("li", { className: "pause" }, make("span", {}), `${took(pause)} pause`) : null,
      make("li", {}, make("span", { className: "at" }, took(when)), make("span", { className: "sizes" }, bytesOf(bytes)))].filter(Boolean)))) : null,
    side.fields.length ? make("details", {}, make("summary", {}, `${side.fields.length} header fields`), fields(side.fields)) : null);
}

const fields = (pairs, more = "") => make("dl", { className: `fields ${more}` }, ...pairs.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));

function whole(step) {
  const context = step.context;
  const earlier = context.of >= 0 ? whole(STEPS[context.of]).slice(0, context.keep).map((one) => [...one.slice(0, 4), 0, ...one.slice(5)]) : [];
  for (const number of context.entered) if (earlier[number]) earlier[number][4] = 1;
  return [...earlier, ...context.parts];
}

function part([what, name, shown, left, entered, origin, bytes], gone) {
  const change = gone ? (entered ? "perhaps left" : "left") : entered ? "entered" : "kept";
  return make("li", { className: gone ? "left" : change }, make("div", { className: "who" }, change === "kept" ? null : make("span", { className: "change" }, `${change} `), make("b", {}, what), ` ${name} `,
    make("span", { className: "soft" }, ...(change !== "kept" && origin ? ["first in ", link(origin, String(origin)), " · "] : []), bytesOf(bytes))), block(what, DOC.texts[shown], left));
}

function context(step) {
  let asked = at;
  while (asked >= 0 && !STEPS[asked].context) asked -= 1;
  if (asked < 0) return section("Context", "Context", make("p", { className: "soft" }, "No model was asked before."));
  const of = STEPS[asked], told = of.context, parts = whole(of), room = 60;
  const talk = make("ol", { className: "talk" }, ...parts.slice(-room).map((one) => part(one, false)));
  const earlier = parts.length > room ? make("button", { type: "button" }, `${parts.length - room} earlier parts`) : null;
  earlier?.addEventListener("click", () => { talk.prepend(...parts.slice(0, -room).map((one) => part(one, false))); earlier.remove(); });
  return section("Context", make("span", {}, "Context ", soft("what the agent knew")),
    make("p", { className: "line" }, ...(of === step ? [] : ["of model call ", link(of.seq, String(of.seq)), ", the last one before this step · "]), told.model,
      ...(told.since ? [" · since ", link(told.since, told.since), " ", evidence(told.evidence), ` ${told.rule}`] : [" · it begins a conversation"])),
    told.pending.length ? make("p", { className: "line" }, `waits for ${told.pending.join(", ")}`) : null,
    told.left.length ? make("ol", { className: "talk" }, ...told.left.map((one) => part(one, true))) : null,
    ...told.unknown.map((one) => make("p", { className: "soft" }, `not known: ${one}`)),
    DOC.texts[told.system[0]] ? make("details", {}, make("summary", {}, "system prompt"), text(told.system, "System prompt")) : null,
    earlier, talk, make("div", { className: "next" }, make("h3", {}, "It answered"), ...told.next.map((one) => block("Answer", DOC.texts[one], 0))));
}

function show(step) {
  const notes = step.notes || [], marks = [...step.marks.filter((one) => !notes.some((note) => note.includes(one))), ...notes];
  $("at-step").replaceChildren(
    make("section", { className: "step", "aria-label": "Step" },
      make("div", { className: "head" }, make("h2", { id: "step-title", tabIndex: -1 }, `${step.seq} `, make("span", { className: "what" }, step.head || step.title)),
        make("p", { className: "line" }, make("i", { className: `dot ${step.kind.replace(" ", "-")}` }), [step.kind, step.outcome, step.at, took(step.took), step.lane ? `lane ${step.lane}` : "", step.tokens ? `${step.tokens[0]} + ${step.tokens[1]} tokens` : ""].filter(Boolean).join(" · "))),
      marks.length ? make("ul", { className: "marks" }, ...marks.map((one) => make("li", { className: "mark" }, one))) : null,
      step.request ? message(step, "Request", step.request) : null, step.request ? message(step, "Answer", step.answer) : null),
    section("Edges", make("span", {}, "Edges ", soft("why it followed, and what followed")), edges(step)), context(step));
}

function edges(step) {
  const known = new Set(), told = [];
  const add = (word, seq, kind, rule) => { if (!known.has(`${word}${seq}${rule}`)) { known.add(`${word}${seq}${rule}`); told.push(make("li", {}, `${word} `, link(seq, String(seq)), " ", evidence(kind), ` ${rule}`)); } };
  for (const [seq, kind, rule] of step.edges) add("from", seq, kind, rule);
  for (const one of STEPS.slice(at + 1, at + 64)) for (const [seq, kind, rule] of one.edges) if (seq === step.seq) add("to", one.seq, kind, rule);
  return told.length ? make("ul", { className: "plain" }, ...told) : make("p", { className: "soft" }, "None is known.");
}

function openCause(button) {
  const told = DOC.causes[button.dataset.cause];
  back = button.dataset.cause;
  const there = (one, word) => link(one.step, one.name, " ", evidence(word || one.evidence));
  const line = (...inside) => make("p", {}, ...inside);
  const close = make("button", { type: "button" }, "Close");
  close.addEventListener("click", () => closeCause(true));
  $("cause").replaceChildren(make("div", { className: "head" }, make("h2", {}, "Cause ", soft(`of ${told.place} in ${told.step}`)), close), line(make("code", {}, told.value)),
    ...(told.origin ? [line("first in ", there(told.origin, told.evidence), told.rule ? soft(` ${told.rule}`) : null), line(soft(told.origin.exchange)), block("What is there", told.origin.value, 0)]
      : [line(`Nothing before ${told.step} has it: the agent made it, or has it from outside of the recorded traffic.`)]),
    ...(told.way.length ? [make("h3", {}, "then in"), make("ol", { className: "plain" }, ...told.way.map((one) => make("li", {}, there(one))))] : []),
    ...told.unseen.map((one) => make("p", { className: "bad" }, "not seen by the agent in time: ", there(one))), ...told.hints.map((one) => line(soft(`perhaps: ${one}`))));
  $("cause").hidden = false;
  $("cause").focus();
}

function closeCause(focus) {
  $("cause").hidden = true;
  $("cause").replaceChildren();
  if (focus) ([...document.querySelectorAll("[data-cause]")].find((one) => one.dataset.cause === back) || $("step-title"))?.focus();
}

document.addEventListener("click", (event) => {
  const value = event.target.closest("[data-cause]"), to = event.target.closest("[data-seq]");
  if (value) openCause(value);
  else if (to && BY_SEQ.has(Number(String(to.dataset.seq).split(".")[0]))) {
    event.preventDefault();
    go(BY_SEQ.get(Number(String(to.dataset.seq).split(".")[0])), to.tagName === "A");
  }
});
const BY = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: -10, PageDown: 10 }, LETTERS = { e: ["effects", 1], E: ["effects", -1], k: ["kind", 1], K: ["kind", -1], l: ["lane", 1], L: ["lane", -1] };
function before() { const to = STEPS[at].before; if (to !== null) go(BY_SEQ.get(to)); }
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !$("cause").hidden) return closeCause(true);
  const inside = event.target.closest(".scrubbers, .list");
  if (!inside || event.ctrlKey || event.metaKey || event.altKey) return;
  const slider = event.target.id.startsWith("scrub-") ? event.target.id.slice(6) : "", listed = event.target.id === "list";
  let done = true;
  if (event.key === "b") before();
  else if (event.key in LETTERS) move(...LETTERS[event.key]);
  else if (listed && event.key in BY) go(at + ({ ArrowUp: -1, ArrowDown: 1 }[event.key] || BY[event.key]));
  else if (slider && event.key in BY) move(slider, BY[event.key]);
  else if ((slider || listed) && event.key === "Home") move(slider || "time", "first");
  else if ((slider || listed) && event.key === "End") move(slider || "time", "last");
  else done = false;
  if (done) event.preventDefault();
});

function start() {
  $("chain").append(make("code", {}, `chain ${DOC.chain}`), " · playhead verify --receipt FILE --key KEY");
  $("facts").append(...DOC.summary.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  $("effects").append(...(DOC.effects.length ? DOC.effects.map(([seq, name, note, result]) => make("li", {}, make("a", { href: `#${seq}`, "data-seq": String(seq), className: note ? "bad" : "" }, `${seq} ${name}${note ? `, ${note}` : ""}`), ...(result ? [" ", soft(result)] : []))) : [make("li", { className: "soft" }, "None.")]));
  $("receipt-text").append(text(DOC.receipt, "Text of the receipt"));
  $("divergences").append(DOC.divergences.length ? make("ol", { className: "plain" }, ...DOC.divergences.map(([seq, kind, what, said]) => make("li", {}, link(seq, String(seq)), " ", make("b", {}, kind), ` ${what} `, soft(said)))) : make("p", { className: "soft" }, "None."));
  $("cache").append(DOC.cache.length ? make("ul", { className: "plain" }, ...DOC.cache.map(([name, verdict, read, prompt, why]) => make("li", {}, link(name, name), ` ${verdict}, ${read ?? "?"} of ${prompt || "?"} tokens read `, soft(why)))) : make("p", { className: "soft" }, "No model was asked."));
  if (DOC.files) {
    const told = ([when, paths, more]) => `${when}: ${paths.map(([change, path]) => `${change} ${path}`).join(", ") || "nothing changed"}${more ? ` and ${more} more` : ""}`;
    $("files").append(make("p", {}, DOC.files.about), make("ul", { className: "plain" }, ...DOC.files.rows.map((one) => make("li", {}, told(one)))));
  } else {
    $("files").append(make("p", { className: "soft" }, "The run has no manifest of its folder."));
  }
  strip = new Strip(DOC.run, $("canvas"), $("gaps"), $("lane-names"), (place) => { let low = 0; STEPS.forEach((one, number) => { if (one.place[0] <= place) low = number; }); go(low); });
  $("list").addEventListener("scroll", () => requestAnimationFrame(rows), { passive: true });
  $("previous").addEventListener("click", () => go(at - 1));
  $("next").addEventListener("click", () => go(at + 1));
  $("before-effect").addEventListener("click", before);
  for (const of of OF) $(`scrub-${of}`).addEventListener("input", (event) => go(stops(of, at)[Number(event.target.value) - 1]));
  const wanted = BY_SEQ.get(Number(location.hash.slice(1)));
  if (STEPS.length) go(wanted ?? at);
  addEventListener("hashchange", () => { const to = BY_SEQ.get(Number(location.hash.slice(1))); if (to !== undefined) go(to); });
}
