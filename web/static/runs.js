import { follow, part, segment, watch } from "./net.js";

const rows = document.getElementById("rows");
const compare = document.getElementById("compare");
const chosen = [];

function query(from) {
  const given = new URLSearchParams(location.search);
  given.delete("from");
  if (from) given.set("from", from);
  return `/parts/runs?${given}`;
}

rows?.addEventListener("change", (event) => {
  const name = event.target.value, at = chosen.indexOf(name);
  if (event.target.checked && at < 0) chosen.push(name);
  if (!event.target.checked && at >= 0) chosen.splice(at, 1);
  while (chosen.length > 2) {
    const first = chosen.shift();
    for (const one of rows.querySelectorAll("input")) if (one.value === first) one.checked = false;
  }
  compare.disabled = chosen.length !== 2;
});
compare?.addEventListener("click", () => { location.href = `/diff/${segment(chosen[0])}/${segment(chosen[1])}`; });

const older = document.getElementById("older");
older?.addEventListener("click", async () => {
  older.disabled = true;
  const more = await part(query(older.dataset.from));
  const behind = more.querySelector("[data-behind]")?.dataset.behind;
  const first = more.querySelector("a");
  rows.append(more);
  document.getElementById("shown").textContent = String(rows.children.length);
  if (behind) { older.dataset.from = behind; older.disabled = false; } else older.hidden = true;
  first?.focus();
});

// What has changed is put into the rows that are there: a row that somebody is about to click on stays the same one.
function adopt(fresh) {
  const of = (row) => row.querySelector("input").value;
  const known = new Map([...rows.children].map((row) => [of(row), row]));
  const wanted = [...fresh.querySelectorAll("tr")].map((row) => {
    const old = known.get(of(row));
    if (!old) return row;
    for (const [number, cell] of [...row.children].entries()) {
      const before = old.children[number];
      before.className = cell.className;
      // The first one says whether it is chosen.
      if (number && before.innerHTML !== cell.innerHTML) before.replaceChildren(...cell.childNodes);
    }
    return old;
  });
  let at = rows.firstElementChild;
  for (const row of wanted) {
    while (at && at !== row && !wanted.includes(at)) { const gone = at; at = at.nextElementSibling; gone.remove(); }
    if (at === row) at = at.nextElementSibling; else rows.insertBefore(row, at);
  }
  while (at) { const gone = at; at = at.nextElementSibling; gone.remove(); }
}

// Of a list that somebody has made longer the rows stay as they are. What is still being computed is news once it is known.
const shownNow = follow(document.getElementById("head").dataset.version, () => 400, async (signal) => {
  if (!rows) return location.reload();
  if (older?.dataset.from > 50) return;
  adopt(await part(query(), signal));
});
watch("", { now: ({ run }) => shownNow.told(run.version) });
