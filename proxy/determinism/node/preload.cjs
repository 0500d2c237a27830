// A clock and randomness that a replay repeats, for an unchanged Node program; the variables are those of
// `../python/playhead_preload/__init__.py`. Runs in each process and each worker before its first line. Whatever goes
// wrong in here, the program goes on.
'use strict';

const LOADED = Symbol.for('playhead.preload');

function start() {
  const { env } = process;
  const notes = require('./notes.cjs');
  const worker = require('worker_threads');
  const wanted = env.PLAYHEAD_LANE || '0';
  const context = worker.isMainThread ? wanted : `${wanted}.w${worker.threadId}`;
  env.PLAYHEAD_LANE = notes.claim(context, 'node', process.versions.node);
  const parts = [];
  if ((env.PLAYHEAD_CLOCK || 'off') !== 'off') parts.push('clock');
  if (env.PLAYHEAD_SEED) parts.push('entropy');
  if (env.PLAYHEAD_SLEEPS === 'short') parts.push('sleeps');
  for (const part of [...parts, 'sources', 'processes', 'proxy', 'agents']) {
    try {
      require(`./${part}.cjs`).start();
    } catch (error) {
      notes.write('problem', `${part}: ${error && error.message}`);
    }
  }
  // Without this an ES module would import what was there before.
  require('module').syncBuiltinESMExports();
}

if (process.env.PLAYHEAD_NOTES && !globalThis[LOADED]) {
  Object.defineProperty(globalThis, LOADED, { value: true });
  try {
    start();
  } catch (error) {
    process.stderr.write(`playhead: this Node runs without the preload: ${error && error.message}\n`);
  }
}
