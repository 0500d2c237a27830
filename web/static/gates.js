// Gates: what is held is kept in place while it is looked at; what has been ruled on elsewhere says by whom.

import { change, data, part, quoted, segment, watch } from "./net.js";

const root = document.getElementById("gates");
const began = performance.now();
const typed = () => [...root.querySelectorAll("article[data-id]")];

function tick() {
  const passed = (performance.now() - began) / 1000;
  for (const gate of typed()) {
    if (gate.dataset.ended) continue;
    const timer = gate.querySelector(".timer"), left = Math.max(0, Math.round(Number(timer.dataset.left) - passed + Number(gate.dataset.offset || 0)));
    const all = Number(gate.dataset.all);
    const text = left > 90 ? `Refused in ${Math.floor(left / 60)} min ${left % 60} s` : `Refused in ${left} s`;
    if (timer.textContent !== text) timer.textContent = text;
    gate.querySelector("meter").value = left;
    gate.classList.toggle("soon", left <= all / 3 && left > Math.min(15, all / 6));
    gate.classList.toggle("now", left <= Math.min(15, all / 6));
  }
}

// A request is held no more: `ruled` says whether it is known how that ended.
function end(gate, text, ruled) {
  const act = gate.querySelector(".act"), inside = act?.contains(document.activeElement);
  gate.dataset.ended = ruled ? "ruled" : "yes";
  gate.endedAt = performance.now();
  act?.remove();
  gate.querySelector(".timer").textContent = "Held no more";
  gate.querySelector("meter").hidden = true;
  say(gate, text);
  if (inside) gate.focus(); // else whoever was about to rule would be at the top of the page
}

const MUTE = "Its proxy does not answer: it stays held, and can be let go once it does";
const MUTE_GATE = "Its proxy does not answer: unless it does in time, it is refused at its deadline";

function say(gate, text) {
  const said = gate.querySelector(".said");
  if (said.textContent !== text) said.textContent = text;
}

// After a ruling: the next request that waits, else the heading.
function next(place, among) {
  const waiting = [...root.querySelectorAll(among)].filter((one) => !one.dataset.ended);
  const after = waiting.find((one) => place.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING);
  (after || waiting[0] || document.getElementById("title")).focus();
}

const lost = () => document.activeElement === document.body;
const written = (ruled) => `${ruled.said}, ${new Date(ruled.at_ns / 1e6).toLocaleTimeString()}${ruled.reason ? `: ${ruled.reason}` : ""}`;

// Put a section in place of the one that is shown, where it says something else; the focus stays at what it was at.
function adopt(name, fresh, place) {
  const find = (within) => within.querySelector(`section[aria-label="${name}"]`);
  const old = find(root), arrived = find(fresh);
  if (arrived) arrived.came = arrived.outerHTML;
  // What a process holds at a breakpoint stays held while it hangs, with what somebody has written there.
  const mute = new Set([...fresh.querySelectorAll("[data-silent]")].map((one) => one.dataset.silent));
  const stuck = [...old?.querySelectorAll("article[data-break]") || []].filter((one) => mute.has(one.dataset.pid));
  for (const one of old?.querySelectorAll("article[data-break]") || []) {
    if (stuck.includes(one)) say(one, MUTE);
    else if (one.querySelector(".said").textContent === MUTE) say(one, "");
  }
  if (stuck.length && !arrived) return;
  if (!old && arrived) return place.after(arrived);
  if (!old || old.came === arrived?.came) return;
  const at = document.activeElement, inside = old.contains(at);
  if (old.querySelector("[data-sure]")) return; // somebody is asked whether to stop it
  const chosen = inside && at.matches("textarea") ? [at.selectionStart, at.selectionEnd] : null;
  // What is held at a breakpoint does not change: what somebody has written there stays.
  const known = new Map([...old.querySelectorAll("article[data-break]")].map((one) => [one.dataset.break, one]));
  for (const one of arrived?.querySelectorAll("article[data-break]") || []) {
    const kept = known.get(one.dataset.break);
    if (kept) one.replaceWith(kept);
  }
  arrived?.append(...stuck);
  const same = (one) => one.tagName === at.tagName && one.textContent === at.textContent && one.getAttribute("href") === at.getAttribute("href");
  const of = (one) => one.closest("article")?.dataset;
  const named = (one) => of(one)?.run || of(one)?.break || "";
  if (!arrived) old.remove(); else old.replaceWith(arrived);
  if (!inside) return;
  const again = arrived && [...arrived.querySelectorAll(at.tagName)].find((one) => same(one) && named(one) === named(at));
  (again || document.getElementById("title")).focus({ preventScroll: true });
  if (again && chosen) again.setSelectionRange(...chosen);
}

let asking = false, again = false;
async function look() {
  if (asking) { again = true; return; }
  asking = true;
  try {
    const asked = performance.now();
    const fresh = await part("/parts/gates");
    const now = performance.now(), passed = (now - began) / 1000;
    const known = new Map(typed().map((one) => [one.dataset.id + " " + one.dataset.digest, one]));
    const place = document.getElementById("held-gates"), arrived = fresh.querySelector("#held-gates");
    const held = new Set();
    for (const gate of arrived.querySelectorAll("article[data-id]")) {
      const key = gate.dataset.id + " " + gate.dataset.digest, old = known.get(key);
      held.add(key);
      if (old && old.querySelector(".said").textContent === MUTE_GATE) say(old, "");
      // It is listed, so it is held, whatever was shown; but a list that was asked for before it ended says nothing of that.
      if (old && !(old.dataset.ended && old.endedAt <= asked)) continue;
      gate.dataset.offset = String(passed);
      if (old) {
        const inside = old.contains(document.activeElement);
        old.replaceWith(gate);
        if (inside) gate.focus();
        continue;
      }
      place.querySelector(".empty")?.remove();
      place.append(gate);
    }
    const gone = [...known].filter(([key, one]) => !held.has(key) && one.dataset.ended !== "ruled");
    if (gone.length) {
      const { rulings } = await data("/data/gates");
      // Whose list is missing is said by the answer that has the lists: in a later one a process may answer again, and hold it.
      const silent = new Set([...fresh.querySelectorAll("[data-silent]")].map((one) => one.dataset.silent));
      const cut = fresh.querySelector("#state").dataset.more !== "0"; // then what is not listed may be held
      for (const [, gate] of gone) {
        const ruled = rulings.find((one) => one.id === gate.dataset.id);
        if (ruled) end(gate, written(ruled), true);
        else if (silent.has(gate.dataset.pid)) say(gate, MUTE_GATE);
        else if (!cut) end(gate, "It is held no more: its run or its client has ended", false);
      }
    }
    if (!place.childElementCount) place.replaceChildren(...arrived.childNodes);
    for (const name of ["Open runs", "Rulings", "Breakpoints"]) adopt(name, fresh, place);
    for (const one of root.querySelectorAll("[data-silent]")) one.remove();
    for (const one of fresh.querySelectorAll("[data-silent]")) place.before(one);
    const state = fresh.querySelector("#state");
    document.getElementById("state").replaceChildren(...state.childNodes);
  } catch (error) { /* the banner says that nobody answers */ }
  asking = false;
  if (again) { again = false; look(); }
}

// Put the recorded answer into the box: what is not edited of it is sent as it was recorded.
root.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-edit]");
  if (!button) return;
  const place = button.closest("article"), box = place.querySelector("textarea");
  say(place, "");
  let recorded;
  try { recorded = (await data(`/data/breaks/${quoted(place.dataset.break)}/recorded`)).answer; }
  catch (error) { return say(place, error.message); }
  box.value = recorded;
  box.dataset.edited = "yes";
  box.rows = Math.min(20, Math.max(3, box.value.split("\n").length));
  box.focus();
});

root.addEventListener("input", (event) => {
  if (event.target.matches("textarea") && !event.target.value) delete event.target.dataset.edited; // whatever is written now is all new
});

root.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-act]");
  if (!button) return;
  const place = button.closest("article"), said = place.querySelector(".said"), act = button.dataset.act;
  if ((act === "stop" || act === "quit") && !button.dataset.sure) {
    button.dataset.sure = "yes";
    const named = [...button.childNodes];
    button.textContent = `${act === "quit" ? "Quit" : "Stop"} it: sure?`;
    setTimeout(() => { delete button.dataset.sure; button.replaceChildren(...named); }, 4000);
    return;
  }
  delete button.dataset.sure;
  const all = [...place.querySelectorAll("button[data-act]")];
  for (const one of all) one.disabled = true;
  said.textContent = "";
  try {
    if (place.dataset.id) {
      const told = await change(`/data/gates/${quoted(place.dataset.id)}/${act}`, { digest: place.dataset.digest, reason: place.querySelector("input").value });
      end(place, `${told.ruling} by ${told.by}, ${new Date().toLocaleTimeString()}`, false);
      next(place, "article[data-id]");
    } else if (place.dataset.break) {
      const box = place.querySelector("textarea");
      const body = act !== "answer" ? {} : box.dataset.edited ? { answer: box.value, edited: true } : { answer: box.value };
      await change(`/data/breaks/${quoted(place.dataset.break)}/${act}`, body);
      next(place, "article[data-break]");
    } else await change(`/data/runs/${segment(place.dataset.run)}/stop`, {});
    await look();
  } catch (error) {
    said.textContent = error.message;
    if (!place.dataset.ended) for (const one of all) one.disabled = false;
    look();
    if (lost()) button.focus();
  }
  if (lost()) document.getElementById("title").focus(); // a browser takes it from what is disabled
});

setInterval(tick, 1000);
tick();
watch("", { gate: look, run: look });
setInterval(look, 5000);
