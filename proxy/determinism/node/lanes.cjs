// Who looks: the file that calls, by the end of its path. So a library that looks whenever it likes shifts nothing for
// the program. Node gives tasks no names that come again: those of one file share a lane.
'use strict';

const { sep } = require('path');

const OURS = __dirname + sep;
const DEPTH = 8;
const KEPT = 3; // folders and file of a path: the rest depends on where the program is installed
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

// called: the function of ours that was called, from whose caller on is looked.
exports.here = (called) => {
  const { stackTraceLimit, prepareStackTrace } = Error;
  let found = 'native';
  try {
    Error.prepareStackTrace = sites;
    // Each frame costs: mostly the first is the one.
    found = file(called, 1) || file(called, DEPTH) || found;
  } catch {
    // A frozen Error, say: then all share a lane.
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    Error.prepareStackTrace = prepareStackTrace;
  }
  let name = names.get(found);
  if (name === undefined) {
    name = found.split(/[\\/]/).slice(-KEPT).join('/');
    names.set(found, name);
  }
  return name;
};
