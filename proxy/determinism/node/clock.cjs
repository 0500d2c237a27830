// The wall clock in milliseconds: real and written down, or as it was written down. So is the time from which
// `performance` counts; that itself, `hrtime` and timers stay real. Laid out as `../python/playhead_preload/clock.py` says.
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
  return (called, now = realNow()) => {
    const context = contexts.here(called);
    let number = numbers.get(context);
    if (number === undefined) {
      number = numbers.size + 1;
      numbers.set(context, number);
      notes.write('lane', number, context);
    }
    written += 1;
    if (written > MOST) {
      if (written === MOST + 1) notes.write('problem', `the journal is full: ${MOST} reads`);
      return now;
    }
    record.writeUInt32LE(number, 0);
    record.writeBigUInt64LE(BigInt(Math.round(now * 1000)) * 1000n, 4);
    try {
      writeSync(descriptor, record);
    } catch (error) {
      if (written < MOST) notes.write('problem', `the journal cannot be written: ${error.code}`);
      written = MOST + 1;
    }
    return now;
  };
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
  return (called) => {
    const context = contexts.here(called);
    let known = reads.get(context);
    if (known === undefined) {
      known = { place: 0, end: 0 };
      reads.set(context, known);
    }
    if (known.place < known.end) {
      last = Number(data.readBigUInt64LE(known.place) / 1000n) / 1000;
      known.place += 8;
    } else {
      if (!known.told) notes.write('exhausted', context);
      known.told = true;
      last = Math.floor(last) + 1;
    }
    return last;
  };
}

exports.start = () => {
  const readClock = process.env.PLAYHEAD_CLOCK === 'write' ? writer() : reader();
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
