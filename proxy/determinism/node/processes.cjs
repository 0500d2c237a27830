// The processes that this one starts: each gets a context, and the preloads, also where it is given other variables.
'use strict';

const childProcess = require('child_process');
const { createHash } = require('crypto');
const { basename, delimiter } = require('path');
const workerThreads = require('worker_threads');
const notes = require('./notes.cjs');

const NAMES = ['CLOCK', 'SEED', 'NOTES', 'TAPE', 'START', 'SLEEPS', 'LIBRARY', 'NODE', 'PYTHON'].map((name) => `PLAYHEAD_${name}`);
const ours = {};
for (const name of [...NAMES, 'PYTHONHASHSEED']) {
  if (process.env[name] !== undefined) ours[name] = process.env[name];
}
const MOST_LENGTH = 180; // of a context: a journal's name has 200 at most, with what is put behind it
let children = 0;

function preloaded(options, node) {
  const given = options && options.env; // or a symbol
  if (!node || given === null || typeof given !== 'object' || (given.NODE_OPTIONS || '').includes(node)) return options;
  const words = `${given.NODE_OPTIONS || ''} ${node}`.trim();
  return { ...options, env: { ...given, ...ours, PLAYHEAD_LANE: notes.context(), NODE_OPTIONS: words } };
}

function variables(environ, program) {
  children += 1;
  let context = `${notes.context()}.${children}`;
  if (context.length > MOST_LENGTH) context = `0.n-${createHash('sha256').update(context).digest('hex').slice(0, 16)}`;
  notes.write('child', context, basename(program));
  const made = { ...environ, ...ours, PLAYHEAD_LANE: context };
  const { PLAYHEAD_LIBRARY: library, PLAYHEAD_NODE: node, PLAYHEAD_PYTHON: python } = ours;
  if (library && !(made.LD_PRELOAD || '').includes(library)) {
    made.LD_PRELOAD = made.LD_PRELOAD ? `${library}:${made.LD_PRELOAD}` : library;
  }
  if (node && !(made.NODE_OPTIONS || '').includes(node)) {
    made.NODE_OPTIONS = `${made.NODE_OPTIONS || ''} ${node}`.trim();
  }
  if (python && !(made.PYTHONPATH || '').split(delimiter).includes(python)) {
    made.PYTHONPATH = [python, ...(made.PYTHONPATH ? [made.PYTHONPATH] : [])].join(delimiter);
  }
  return made;
}

exports.start = () => {
  const RealWorker = workerThreads.Worker;
  workerThreads.Worker = class Worker extends RealWorker {
    constructor(file, options) {
      super(file, preloaded(options, ours.PLAYHEAD_NODE));
    }
  };
  const { prototype } = childProcess.ChildProcess;
  const { spawn } = prototype;
  prototype.spawn = function spawned(options) {
    if (options && Array.isArray(options.envPairs)) {
      const given = options.envPairs.map((pair) => [
        pair.slice(0, pair.indexOf('=')),
        pair.slice(pair.indexOf('=') + 1),
      ]);
      const made = variables(Object.fromEntries(given), options.file || 'node');
      options.envPairs = Object.entries(made).map(([name, value]) => `${name}=${value}`);
    }
    return spawn.call(this, options);
  };
  for (const name of ['spawnSync', 'execFileSync', 'execSync']) {
    const real = childProcess[name];
    childProcess[name] = function started(program, ...rest) {
      const listed = name !== 'execSync' && (Array.isArray(rest[0]) || rest[0] == null);
      const [args, options] = listed ? [rest[0] || [], rest[1] || {}] : [[], rest[0] || {}];
      if (typeof options !== 'object') return real.call(this, program, ...rest); // which says what is wrong
      const given = typeof program === 'string' ? program : 'node';
      const env = variables(options.env || process.env, name === 'execSync' ? 'sh' : given);
      const words = name === 'execSync' ? [program] : [program, args];
      return real.call(this, ...words, { ...options, env });
    };
  }
};
