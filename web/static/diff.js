import { part, watch } from "./net.js";

const more = document.getElementById("more");
more?.addEventListener("click", async () => {
  more.disabled = true;
  const given = new URLSearchParams(location.search);
  given.set("from", more.dataset.from);
  const fresh = await part(`/parts${location.pathname}?${given}`);
  const first = fresh.querySelector("a");
  document.getElementById("rows").append(fresh);
  const next = Number(more.dataset.from) + 200;
  if (next < Number(more.dataset.total)) { more.dataset.from = next; more.disabled = false; } else more.hidden = true;
  first?.focus();
});
watch("", {});
