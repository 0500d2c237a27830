// Randomness by key: what each context asks for is a function of the seed, the context and how often it asked. TLS and keys
// are made by OpenSSL itself, and stay as random as they were; so is what libraries ask for that make keys themselves.
'use strict';

const crypto = require('crypto');
const contexts = require('./contexts.cjs');
const notes = require('./notes.cjs');

const BLOCK_BYTES = 64;
const seed = Buffer.from(process.env.PLAYHEAD_SEED, 'hex');
const { createHmac, randomBytes: kernelBytes } = crypto;
const counts = new Map();

function stream(size, ...key) {
  const inner = createHmac('sha512', seed).update([notes.context(), ...key].join('\n')).digest();
  const made = Buffer.alloc(size);
  for (let place = 0; place < size; place += BLOCK_BYTES) {
    createHmac('sha512', inner).update(String(place)).digest().copy(made, place);
  }
  return made;
}

function bytes(called, size) {
  const context = contexts.drawing(called);
  if (context === undefined) return kernelBytes(size);
  const number = (counts.get(context) || 0) + 1;
  counts.set(context, number);
  return stream(size, 'bytes', context, number);
}

// Bob Jenkins's small fast counter, as PractRand has it; 53 bits of two draws.
function generator(context) {
  const state = new Int32Array(Uint8Array.from(stream(16, 'random', context)).buffer);
  const draw = () => {
    const sum = (state[0] + state[1] + state[3]) | 0;
    state[3] = (state[3] + 1) | 0;
    state[0] = state[1] ^ (state[1] >>> 9);
    state[1] = (state[2] + (state[2] << 3)) | 0;
    state[2] = ((state[2] << 21) | (state[2] >>> 11)) + sum;
    return sum >>> 0;
  };
  for (let round = 0; round < 12; round += 1) draw();
  return () => ((draw() >>> 5) * 67108864 + (draw() >>> 6)) / 9007199254740992;
}

function uuid(called) {
  const made = bytes(called, 16);
  made[6] = (made[6] & 0x0f) | 0x40;
  made[8] = (made[8] & 0x3f) | 0x80;
  return made.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

// Give the part of a buffer that is to be filled; offset and size count its elements.
function part(target, offset = 0, size = undefined) {
  const view = ArrayBuffer.isView(target)
    ? new Uint8Array(target.buffer, target.byteOffset, target.byteLength)
    : new Uint8Array(target);
  const unit = target.BYTES_PER_ELEMENT || 1;
  return view.subarray(offset * unit, size === undefined ? undefined : (offset + size) * unit);
}

function fill(called, target, ...where) {
  const view = part(target, ...where);
  view.set(bytes(called, view.length));
  return target;
}

// In each of these the real function comes first: it says what is wrong with its arguments.
exports.start = () => {
  const generators = new Map();
  Math.random = function random() {
    const context = contexts.here(random);
    let found = generators.get(context);
    if (found === undefined) {
      found = generator(context);
      generators.set(context, found);
    }
    return found();
  };

  const real = { ...crypto };
  crypto.randomUUID = function randomUUID(options) {
    real.randomUUID(options);
    return uuid(randomUUID);
  };
  crypto.randomBytes = function randomBytes(size, callback) {
    if (callback === undefined) return fill(randomBytes, real.randomBytes(size));
    const made = bytes(randomBytes, size);
    return real.randomBytes(size, (error, given) => callback(error, error ? given : made));
  };
  // Its older names.
  for (const name of ['pseudoRandomBytes', 'prng', 'rng']) {
    if (crypto[name] === real.randomBytes) crypto[name] = crypto.randomBytes;
  }
  crypto.randomFillSync = function randomFillSync(target, ...where) {
    real.randomFillSync(target, ...where);
    return fill(randomFillSync, target, ...where);
  };
  crypto.randomFill = function randomFill(target, ...rest) {
    const callback = rest.pop();
    if (typeof callback !== 'function') return real.randomFill(target, ...rest, callback);
    const made = bytes(randomFill, target.byteLength);
    return real.randomFill(target, ...rest, (error, given) => {
      if (!error) {
        const view = part(target, ...rest);
        view.set(made.subarray(0, view.length));
      }
      callback(error, given);
    });
  };
  crypto.randomInt = function randomInt(...words) {
    const callback = typeof words[words.length - 1] === 'function' ? words.pop() : undefined;
    real.randomInt(...words);
    const [low, high] = words.length > 1 ? words : [0, words[0]];
    // Ranges are at most 48 bits: the remainder of 128 bits is even enough.
    const drawn = BigInt(`0x${bytes(randomInt, 16).toString('hex')}`) % BigInt(high - low);
    const made = low + Number(drawn);
    if (callback === undefined) return made;
    return process.nextTick(callback, undefined, made);
  };

  const web = Object.getPrototypeOf(crypto.webcrypto);
  const { getRandomValues, randomUUID } = web;
  const define = (name, value) =>
    Object.defineProperty(web, name, { value, configurable: true, enumerable: true, writable: true });
  // `crypto.getRandomValues` gives this one, too.
  define('getRandomValues', function getValues(target) {
    return fill(getValues, getRandomValues.call(this, target));
  });
  define('randomUUID', function webUUID() {
    randomUUID.call(this);
    return uuid(webUUID);
  });
};
