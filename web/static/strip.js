// The timeline: bins of the server, drawn on a canvas; the cursor is drawn over it without asking anybody.

import { data, segment } from "./net.js";
import { size } from "./styles.js";

const ORDER = ["telemetry", "http", "retrieval", "mcp", "model call", "tool call", "effect", "error"];
const NAMES = { "telemetry": "--telemetry", "http": "--http", "retrieval": "--retrieval", "mcp": "--mcp", "model call": "--model",
  "tool call": "--tool", "effect": "--effect", "error": "--bad", "duplicate": "--bad" };
const MODELS = new Set(["model call", "tool call", "retrieval"]);
const TOP = 14, BOTTOM = 18, LEAST = 56;

export class Strip {
  constructor(run, canvas, gaps, names, moved) {
    this.run = run; this.canvas = canvas; this.gaps = gaps; this.names = names; this.moved = moved;
    this.axis = "time"; this.begin = 0; this.end = 1; this.told = null; this.cursor = null; this.asking = null;
    this.picture = document.createElement("canvas");
    new ResizeObserver(() => this.load()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    let down = false;
    const point = (event) => {
      const box = canvas.getBoundingClientRect();
      const place = this.begin + (this.end - this.begin) * Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      this.moved(place);
    };
    canvas.addEventListener("pointerdown", (event) => { down = true; canvas.setPointerCapture(event.pointerId); point(event); });
    canvas.addEventListener("pointermove", (event) => { if (down) point(event); });
    canvas.addEventListener("pointerup", () => { down = false; });
    canvas.addEventListener("pointercancel", () => { down = false; });
  }

  async load() {
    const width = Math.round(this.canvas.clientWidth);
    if (!width) return null;
    this.asking?.abort();
    this.asking = new AbortController();
    const query = `width=${Math.min(width, 2000)}&axis=${this.axis}&begin=${this.begin}&end=${this.end}`;
    try { this.told = await data(`/data/runs/${segment(this.run)}/strip?${query}`, this.asking.signal); }
    catch (error) { if (error.name !== "AbortError") console.info(error.message); return undefined; }
    this.draw();
    return this.told;
  }

  zoom(factor) {
    const middle = this.cursor === null ? (this.begin + this.end) / 2 : this.cursor;
    const span = Math.min(1, Math.max((this.end - this.begin) * factor, 2e-4));
    this.begin = Math.min(Math.max(0, middle - span / 2), 1 - span);
    this.end = this.begin + span;
    return this.load();
  }

  // Bring a place into view where a part of the run is shown alone.
  follow(place) {
    if (this.end - this.begin >= 1 || (place >= this.begin && place <= this.end)) return;
    const span = this.end - this.begin;
    this.begin = Math.min(Math.max(0, place - span / 2), 1 - span);
    this.end = this.begin + span;
    this.load();
  }

  draw() {
    const told = this.told;
    if (!told) return;
    const style = getComputedStyle(document.documentElement), colour = {};
    for (const [name, property] of Object.entries(NAMES)) colour[name] = style.getPropertyValue(property).trim();
    this.colours = { ink: style.getPropertyValue("--ink").trim(), line: style.getPropertyValue("--line").trim(), faint: style.getPropertyValue("--faint").trim() };
    const count = Math.max(1, told.lanes.length);
    const each = count === 1 ? 30 : count <= 4 ? 22 : count <= 12 ? 12 : 6, room = count <= 4 ? 6 : 2;
    const height = Math.max(LEAST, TOP + (told.gaps.length ? BOTTOM : 4) + count * (each + room));
    const width = this.canvas.clientWidth, scale = devicePixelRatio || 1;
    size("#canvas", "height", `${height}px`);
    for (const one of [this.canvas, this.picture]) { one.width = Math.round(width * scale); one.height = Math.round(height * scale); }
    const pen = this.picture.getContext("2d");
    pen.scale(scale, scale);
    const x = width / told.width, span = told.end - told.begin;
    pen.fillStyle = this.colours.faint;
    for (const gap of told.gaps) {
      const from = (gap.begin - told.begin) / span * width, to = (gap.end - told.begin) / span * width;
      pen.fillRect(from, 0, Math.max(1, to - from), height);
    }
    told.lanes.forEach((lane, number) => {
      const top = TOP + number * (each + room);
      pen.fillStyle = this.colours.line;
      pen.fillRect(0, top + each, width, 0.5);
      for (const kind of ORDER) {
        const runs = lane.kinds[kind];
        if (!runs) continue;
        pen.fillStyle = colour[kind];
        // Models above, what was asked of others below: the one waits while the other is under way.
        const half = Math.round(each / 2), model = MODELS.has(kind);
        const low = kind === "error" ? top + each - 2 : model ? top : top + half + 1, tall = kind === "error" ? 2 : half - 1;
        for (let at = 0; at < runs.length; at += 3) {
          const wide = (runs[at + 1] - runs[at]) * x;
          pen.fillRect(runs[at] * x, low, Math.max(1.2, wide - (wide > 4 ? 0.7 : 0)), tall);
        }
      }
      for (const kind of ["effect", "duplicate"]) {
        const runs = lane.kinds[kind];
        if (!runs) continue;
        pen.fillStyle = colour[kind];
        for (let at = 0; at < runs.length; at += 3) {
          const middle = runs[at] * x + 1;
          pen.beginPath(); pen.moveTo(middle - 4.5, 3); pen.lineTo(middle + 4.5, 3); pen.lineTo(middle, TOP - 2); pen.fill();
        }
      }
    });
    this.names.replaceChildren(...(count > 1 && each + room >= 13 ? told.lanes : []).slice(0, 12).map((lane, number) => {
      const item = document.createElement("li");
      size(`#lane-names > :nth-child(${number + 1})`, "top", `${TOP + number * (each + room) + (each - 13) / 2}px`);
      item.textContent = lane.lane ? `${lane.lane} ${lane.name}` : "other";
      return item;
    }));
    const shown = told.gaps.map((gap) => [(gap.begin + gap.end) / 2, gap]).filter(([place]) => place >= told.begin && place <= told.end)
      .map(([place, gap]) => [(place - told.begin) / span * width, gap]).sort((one, other) => other[1].length_us - one[1].length_us).slice(0, 40);
    const taken = [];
    this.gaps.replaceChildren(...shown.map(([at, gap], number) => {
      const free = taken.every((one) => Math.abs(one - at) > 74), label = document.createElement("li"), where = document.createElement("span");
      if (free) taken.push(at);
      size(`#gaps > :nth-child(${number + 1})`, "left", `${Math.round(Math.min(Math.max(at, 52), width - 52))}px`);
      // What finds no room is still there for those who hear it.
      label.className = free ? "" : "sr";
      where.className = "sr";
      where.textContent = ` before ${gap.before}`;
      label.append(gap.text, where);
      return label;
    }));
    this.paint();
  }

  // Draw the cursor; cheap, for it is drawn with every step.
  move(place) { this.cursor = place; if (this.told) this.paint(); }

  paint() {
    const pen = this.canvas.getContext("2d"), told = this.told;
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.picture, 0, 0);
    if (this.cursor === null) return;
    const at = (this.cursor - told.begin) / (told.end - told.begin) * this.canvas.width;
    pen.fillStyle = this.colours.ink;
    pen.fillRect(Math.round(at), 0, Math.max(2, 1.5 * (devicePixelRatio || 1)), this.canvas.height);
  }
}
