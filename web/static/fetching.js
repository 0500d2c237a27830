import { data, segment, watch } from "./net.js";

const place = document.getElementById("fetching"), bar = document.getElementById("bar"), told = document.getElementById("told");
async function look() {
  try {
    const said = await data(`/data/runs/${segment(place.dataset.run)}/fetched`);
    if (said.done) { location.reload(); return; }
    if (said.of) { bar.max = said.of; bar.value = said.so_far; }
    if (said.error) { told.textContent = said.error; told.className = "bad"; bar.hidden = true; return; }
  } catch (error) { told.textContent = error.message; }
  setTimeout(look, 400);
}
look();
watch("", {});
