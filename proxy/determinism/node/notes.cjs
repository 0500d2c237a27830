// Notes of this process: a file of lines, `word TAB word`, as `../python/playhead_preload/process_notes.py`.
'use strict';

const { appendFileSync, openSync, closeSync } = require('fs');
const { join } = require('path');

const folder = process.env.PLAYHEAD_NOTES;
const MOST = 100000;
let mine = '';
let lines = 0;

const escaped = (word) =>
  String(word).replace(/[\\\x00-\x1f\x7f-\uffff]/g, (one) => {
    return `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });

exports.file = (name) => join(folder, name);
exports.context = () => mine;

exports.write = (...given) => {
  lines += 1;
  if (lines > MOST) return;
  const words = lines === MOST ? ['problem', `no more than ${MOST} execution contexts are recorded`] : given;
  try {
    appendFileSync(exports.file(`${mine}.notes`), `${words.map(escaped).join('\t')}\n`);
  } catch {
    // Then it is missing from the receipt, and the program goes on.
  }
};

// Take a context that nobody else has: what was started by a shell was given the same.
exports.claim = (wanted, ...words) => {
  for (let number = 0; ; number += 1) {
    mine = number ? `${wanted}+${number}` : wanted;
    try {
      closeSync(openSync(exports.file(`${mine}.notes`), 'wx', 0o644));
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
  }
  exports.write('process', ...words);
  return mine;
};
