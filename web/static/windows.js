// The lines of a run, by position from 1: a few windows of them are held, the others are asked for.

import { data, segment } from "./net.js";

const SIZE = 100, MOST = 12;

export class Windows {
  constructor(run, arrived, lost) {
    this.run = run; this.arrived = arrived; this.lost = lost; this.held = new Map(); this.asked = new Map(); this.total = 0; this.state = null; this.age = 0;
  }

  row(position) {
    if (position < 1) return null; // a run without a step
    const number = Math.floor((position - 1) / SIZE), window = this.held.get(number);
    if (!window) { this.ask(number); return null; }
    this.held.delete(number); this.held.set(number, window);
    return window[position - 1 - number * SIZE] || null;
  }

  around(position) {
    const number = Math.floor((position - 1) / SIZE);
    for (const one of [number, number + 1, number - 1]) if (one >= 0 && one * SIZE < this.total && !this.held.has(one)) this.ask(one);
  }

  async ask(number) {
    if (this.asked.has(number)) return this.asked.get(number);
    const asking = this.load(number);
    this.asked.set(number, asking);
    try { return await asking; } finally { if (this.asked.get(number) === asking) this.asked.delete(number); }
  }

  async load(number) {
    const age = this.age;
    let told;
    try { told = await data(`/data/runs/${segment(this.run)}/lines?from=${number * SIZE + 1}&limit=${SIZE}`); }
    catch (error) { this.lost(); return null; }
    if (age !== this.age) return null; // it was asked for before everything was forgotten
    this.held.set(number, told.rows);
    while (this.held.size > MOST) this.held.delete(this.held.keys().next().value);
    this.total = told.total; this.state = told;
    this.arrived(told);
    return told;
  }

  async get(position) {
    for (;;) {
      const known = this.row(position), age = this.age;
      if (known || position < 1) return known;
      await this.ask(Math.floor((position - 1) / SIZE));
      if (age === this.age) return this.row(position);
    }
  }

  find(seq) {
    for (const window of this.held.values()) for (const row of window) if (row.seq === seq) return row;
    return null;
  }

  // Forget all, also what is on its way: it was read before.
  forget() { this.age += 1; this.held.clear(); this.asked.clear(); }

  // Say whether all that has been asked for has come.
  async come() { return (await Promise.all([...this.asked.values()])).every(Boolean); }
}
