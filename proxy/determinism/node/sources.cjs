// What else a program finds of time and chance. Clocks that only go on are recorded for the program's own code; libraries keep the
// real ones, by which they wait. What cannot be repeated is noted, where the program's own code uses it.
'use strict';

const fs = require('fs');
const os = require('os');
const clock = require('./clock.cjs');
const contexts = require('./contexts.cjs');
const notes = require('./notes.cjs');

const FILES = new Set(['/dev/urandom', '/dev/random', '/proc/sys/kernel/random/uuid']);
const OPENING = ['createReadStream', 'open', 'openAsBlob', 'openSync', 'readFile', 'readFileSync'];
const MAKING = ['mkdtemp', 'mkdtempSync', 'mkdtempDisposableSync'];
const BILLION = 1000000000n;
const told = new Set();

// Note a source that cannot be repeated, once.
function note(name) {
  if (told.has(name)) return;
  told.add(name);
  notes.write('source', name);
}

function replaceClocks() {
  const counted = Object.getPrototypeOf(performance);
  const realNow = counted.now;
  counted.now = function now() {
    const real = realNow.call(this);
    if (!contexts.isOwn(now)) return real;
    return Number(clock.read(now, 'now', () => BigInt(Math.round(real * 1e6)))) / 1e6;
  };

  const { hrtime: realTime, uptime: realUptime } = process;
  const realBig = realTime.bigint;
  const hrtime = function hrtime(before) {
    if (!contexts.isOwn(hrtime)) return realTime.call(this, before);
    realTime.call(this, before); // which says what is wrong with it
    let found = clock.read(hrtime, 'hrtime', realBig);
    if (before !== undefined) found -= BigInt(before[0]) * BILLION + BigInt(before[1]);
    return [Number(found / BILLION), Number(found % BILLION)];
  };
  hrtime.bigint = function bigint() {
    return contexts.isOwn(bigint) ? clock.read(bigint, 'bigint', realBig) : realBig();
  };
  process.hrtime = hrtime;
  const uptimeOf = (name, real) =>
    function uptime() {
      if (!contexts.isOwn(uptime)) return real();
      return Number(clock.read(uptime, name, () => BigInt(Math.round(real() * 1e9)))) / 1e9;
    };
  process.uptime = uptimeOf('process.uptime', realUptime.bind(process));
  os.uptime = uptimeOf('os.uptime', os.uptime);
}

// Have calls of these names noted: those for which `source` gives one.
function watch(holder, names, source) {
  for (const name of names) {
    const real = holder[name];
    if (typeof real !== 'function') continue;
    const call = {
      [name](...words) {
        const found = source(name, words);
        if (found !== undefined && contexts.isOwn(call)) note(found);
        return real.apply(this, words);
      },
    }[name];
    holder[name] = Object.defineProperties(call, Object.getOwnPropertyDescriptors(real));
  }
}

function watchProperty(holder, key, name) {
  const real = Object.getOwnPropertyDescriptor(holder, key);
  const get = function get() {
    if (contexts.isOwn(get)) note(name);
    return real.get === undefined ? real.value : real.get.call(this);
  };
  Object.defineProperty(holder, key, { configurable: true, enumerable: true, get });
}

exports.start = () => {
  if ((process.env.PLAYHEAD_CLOCK || 'off') !== 'off') replaceClocks();
  const file = (_name, [path]) => (FILES.has(String(path)) ? String(path) : undefined);
  watch(fs, OPENING, file);
  watch(fs.promises, ['open', 'readFile'], file);
  const folder = (name) => `fs.${name}`;
  watch(fs, MAKING, folder);
  watch(fs.promises, ['mkdtemp', 'mkdtempDisposable'], folder);
  watch(process, ['cpuUsage', 'resourceUsage'], (name) => `process.${name}`);
  watchProperty(process, 'pid', 'process.pid');
  watchProperty(process, 'ppid', 'process.ppid');
};
