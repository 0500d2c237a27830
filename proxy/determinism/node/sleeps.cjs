// Sleeps kept short: while nothing but timers keeps the process going, the next one that is due comes at once. So they
// come in the order in which they would have, and a timeout is not taken for a sleep: something is under way then.
'use strict';

const timers = require('timers');
const promises = require('timers/promises');
const { promisify } = require('util');

const STEP_MS = 2;
const KEPT = new Set(['Timeout', 'Immediate']); // what may be there while nothing is under way
const { setTimeout: realTimeout, setInterval: realInterval, clearInterval: stop } = timers;
const realPromise = promises.setTimeout;
const waiting = new Set(); // of { due, ended, wake, woke }
let skipped = 0;
let watch;
let waking; // what was woken last: until it has come, nothing that is due after it may be woken

const realNow = performance.now.bind(performance); // before the recorded one takes its place
const now = () => realNow() + skipped;
const idle = () => process.getActiveResourcesInfo().every((name) => KEPT.has(name));

function step() {
  if (waking !== undefined && !waking.woke()) return;
  waking = undefined;
  let next;
  for (const one of waiting) {
    if (one.ended()) waiting.delete(one);
    else if (next === undefined || one.due < next.due) next = one;
  }
  if (next === undefined) {
    stop(watch);
    watch = undefined;
  } else if (idle()) {
    skipped += Math.max(0, next.due - now());
    waiting.delete(next);
    waking = next;
    next.wake();
  }
}

function wait(delay, ended, wake, woke) {
  waiting.add({ due: now() + delay, ended, wake, woke });
  if (watch === undefined) watch = realInterval(step, STEP_MS).unref();
}

exports.start = () => {
  const { getActiveResourcesInfo } = process;
  if (getActiveResourcesInfo === undefined) throw new Error('sleeps stay real in this Node');

  const timeout = function setTimeout(callback, delay, ...rest) {
    const timer = realTimeout(callback, delay, ...rest);
    if (delay > STEP_MS && typeof timer._idleTimeout === 'number') {
      const ended = () => timer._destroyed || !timer.hasRef();
      let armed;
      const wake = () => {
        timer._idleTimeout = 1;
        timer.refresh();
        armed = timer._idleStart;
      };
      // Its callback may have started it again.
      const woke = () => ended() || timer._idleStart !== armed;
      wait(Number(delay), ended, wake, woke);
    }
    return timer;
  };

  async function sleep(delay, value, options) {
    const { signal, ref } = options || {};
    if (!(delay > STEP_MS) || ref === false) return realPromise(delay, value, options);
    const inner = new AbortController();
    const asleep = realPromise(delay, value, { ...options, signal: inner.signal });
    const abort = () => inner.abort(signal.reason);
    if (signal) {
      if (signal.aborted) abort();
      else signal.addEventListener('abort', abort, { once: true });
    }
    let over = false;
    let woken = false;
    const wake = () => {
      woken = true;
      inner.abort();
    };
    wait(Number(delay), () => over, wake, () => over);
    try {
      return await asleep;
    } catch (error) {
      if (woken) return value;
      throw error;
    } finally {
      over = true;
      if (signal) signal.removeEventListener('abort', abort);
    }
  }

  Object.defineProperty(sleep, 'name', { value: 'setTimeout' });
  Object.defineProperty(timeout, promisify.custom, { enumerable: true, get: () => sleep });
  timers.setTimeout = timeout;
  globalThis.setTimeout = timeout;
  promises.setTimeout = sleep;
};
