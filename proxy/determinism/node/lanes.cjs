// Who looks: the file that calls, by the end of its path. So a library that looks whenever it likes shifts nothing for
// the program. Node gives tasks no names that come again: those of one file share a lane.
'use strict';

const { sep } = require('path');

const OURS = __dirname + sep;
const DEPTH = 8;
const KEPT = 3; // folders and file of a path: the rest depends on where the program is installed
const names = new Map();

const sites = (_error, callSites) => callSites;

exports.here = () => {
  const { stackTraceLimit, prepareStackTrace } = Error;
  const held = {};
  Error.stackTraceLimit = DEPTH;
  Error.prepareStackTrace = sites;
  let found = 'native';
  try {
    Error.captureStackTrace(held, exports.here);
    for (const site of held.stack) {
      const file = site.getFileName();
      if (file && !file.startsWith(OURS) && !file.startsWith('node:')) {
        found = file;
        break;
      }
    }
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
