// Who looks: the file that calls, by the end of its path. So a library that looks whenever it likes shifts nothing for
// the program. Node gives tasks no names that come again: those of one file share a context.
'use strict';

const { sep } = require('path');

const OURS = __dirname + sep;
const DEPTH = 8;
const KEPT = 3; // folders and file of a path: the rest depends on where the program is installed
const MAKE_KEYS =
  /[\\/]node_modules[\\/](?:@noble|@peculiar|@stablelib|brorand|elliptic|jose|jsrsasign|libsodium[^\\/]*|node-forge|openpgp|secp256k1|sodium[^\\/]*|ssh2|tweetnacl)[\\/]/;
const INSTALLED = /[\\/]node_modules[\\/]/;
const names = new Map();

const sites = (_error, callSites) => callSites;

function file(called, depth) {
  const held = {};
  Error.stackTraceLimit = depth;
  Error.captureStackTrace(held, called);
  for (const site of held.stack) {
    const name = site.getFileName();
    if (name && !name.startsWith(OURS) && !name.startsWith('node:')) return name;
  }
  return undefined;
}

// Give the path of the file that calls; called: the function of ours that was called, from whose caller on is looked.
function caller(called) {
  const { stackTraceLimit, prepareStackTrace } = Error;
  let found = 'native';
  try {
    Error.prepareStackTrace = sites;
    // Each frame costs: mostly the first is the one.
    found = file(called, 1) || file(called, DEPTH) || found;
  } catch {
    // A frozen Error, say: then all share a context.
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    Error.prepareStackTrace = prepareStackTrace;
  }
  return found;
}

function named(found) {
  let name = names.get(found);
  if (name === undefined) {
    name = found.split(/[\\/]/).slice(-KEPT).join('/');
    names.set(found, name);
  }
  return name;
}

// Say whether the program's own code calls, and no library: neither Node's nor one that is installed.
exports.isOwn = (called) => {
  const { stackTraceLimit, prepareStackTrace } = Error;
  const held = {};
  try {
    Error.prepareStackTrace = sites;
    Error.stackTraceLimit = 1;
    Error.captureStackTrace(held, called);
    const name = held.stack.length ? held.stack[0].getFileName() : undefined;
    return Boolean(name) && !name.startsWith(OURS) && !name.startsWith('node:') && !INSTALLED.test(name);
  } catch {
    return false; // a frozen Error, say
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    Error.prepareStackTrace = prepareStackTrace;
  }
};

exports.here = (called) => named(caller(called));

// The same for randomness; undefined where keys and nonces are made, which need the kernel's.
exports.drawing = (called) => {
  const found = caller(called);
  return MAKE_KEYS.test(found) ? undefined : named(found);
};
