// The wall clock in milliseconds: real and written down, or as it was written down. So is the time from which
// `performance` counts; for that itself and `hrtime` see `sources.cjs`, and timers stay real. Laid out as `../python/playhead_preload/clock.py` says.
'use strict';

const { existsSync, openSync, readFileSync, writeSync } = require('fs');
const { join } = require('path');
const contexts = require('./contexts.cjs');
const notes = require('./notes.cjs');

const RECORD_BYTES = 12;
const MOST = 1 << 22; // records of one process
const MILLION = 1000000n;
const realNow = Date.now;

function writer() {
  const descriptor = openSync(notes.file(`${notes.context()}.looks`), 'a', 0o644);
  const record = Buffer.alloc(RECORD_BYTES);
  const numbers = new Map();
  let written = 0;
  const put = (context, nanoseconds) => {
    let number = numbers.get(context);
    if (number === undefined) {
      number = numbers.size + 1;
      numbers.set(context, number);
      notes.write('lane', number, context);
    }
    written += 1;
    if (written > MOST) {
      if (written === MOST + 1) notes.write('problem', `the journal is full: ${MOST} reads`);
      return;
    }
    record.writeUInt32LE(number, 0);
    record.writeBigUInt64LE(nanoseconds, 4);
    try {
      writeSync(descriptor, record);
    } catch (error) {
      if (written < MOST) notes.write('problem', `the journal cannot be written: ${error.code}`);
      written = MOST + 1;
    }
  };
  const wall = (called, now = realNow()) => {
    put(contexts.here(called), BigInt(Math.round(now * 1000)) * 1000n);
    return now;
  };
  const only = (context, real) => {
    const now = real();
    put(context, now);
    return now;
  };
  return { wall, only };
}

function reader() {
  const reads = new Map();
  const path = join(process.env.PLAYHEAD_TAPE, `${notes.context()}.journal`);
  const data = existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
  for (let place = 0; place < data.length; ) {
    const begin = place + 8 + data.readUInt32LE(place);
    const end = begin + 8 * data.readUInt32LE(place + 4);
    reads.set(data.toString('utf8', place + 8, begin), { place: begin, end });
    place = end;
  }
  let last = Number(BigInt(process.env.PLAYHEAD_START) / MILLION);
  const take = (context) => {
    let known = reads.get(context);
    if (known === undefined) {
      known = { place: 0, end: 0 };
      reads.set(context, known);
    }
    if (known.place < known.end) {
      known.last = data.readBigUInt64LE(known.place);
      known.place += 8;
      return [known, false];
    }
    if (!known.told) notes.write('exhausted', context);
    known.told = true;
    return [known, true];
  };
  const wall = (called) => {
    const [known, over] = take(contexts.here(called));
    last = over ? Math.floor(last) + 1 : Number(known.last / 1000n) / 1000;
    return last;
  };
  const only = (context, real) => {
    const [known, over] = take(context);
    if (!over) return known.last;
    // It goes on as the real one does: somebody may wait by it.
    const now = real();
    if (known.begun === undefined) known.begun = now;
    return (known.last === undefined ? known.begun : known.last) + now - known.begun;
  };
  return { wall, only };
}

exports.start = () => {
  const { wall: readClock, only } = process.env.PLAYHEAD_CLOCK === 'write' ? writer() : reader();
  // Give nanoseconds of a clock that only goes on, which has contexts of its own; real: reads it.
  exports.read = (called, name, real) => only(`${contexts.here(called)}|${name}`, real);
  const RealDate = Date;
  const now = function now() {
    return readClock(now);
  };
  const construct = (target, words, made) =>
    Reflect.construct(target, words.length ? words : [readClock(construct)], made === Told ? target : made);
  const apply = () => new RealDate(readClock(apply)).toString();
  const Told = new Proxy(RealDate, { construct, apply });
  RealDate.now = now;
  RealDate.prototype.constructor = Told;
  globalThis.Date = Told;

  const { prototype } = Intl.DateTimeFormat;
  const parts = prototype.formatToParts;
  prototype.formatToParts = function formatToParts(date) {
    return parts.call(this, date === undefined ? readClock(formatToParts) : date);
  };
  const format = Object.getOwnPropertyDescriptor(prototype, 'format');
  const made = new WeakMap(); // the same function for one formatter, as without us
  Object.defineProperty(prototype, 'format', {
    ...format,
    get() {
      if (!made.has(this)) {
        const real = format.get.call(this);
        const told = (date) => real(date === undefined ? readClock(told) : date);
        made.set(this, told);
      }
      return made.get(this);
    },
  });

  const counted = Object.getPrototypeOf(performance);
  const { get } = Object.getOwnPropertyDescriptor(counted, 'timeOrigin') || {};
  if (get !== undefined) {
    let origin;
    const timeOrigin = function timeOrigin() {
      const real = get.call(this);
      if (origin === undefined) origin = readClock(timeOrigin, real);
      return origin;
    };
    Object.defineProperty(counted, 'timeOrigin', { configurable: true, enumerable: true, get: timeOrigin });
  }
};
