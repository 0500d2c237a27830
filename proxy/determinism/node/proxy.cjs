// Node's `fetch` follows no proxy variables before version 24; with this its connections go through the proxy. What
// the program sets as a dispatcher itself is left alone.
'use strict';

const tls = require('tls');
const tunnel = require('./tunnel.cjs');

const LOADING = ['FormData', 'Headers', 'Request', 'Response', 'MessageEvent', 'WebSocket', 'EventSource'];
const DISPATCHER = Symbol.for('undici.globalDispatcher.1');

// Say whether nobody has made a dispatcher: at most what waits to be asked for one is there.
function isWaiting() {
  const found = Object.getOwnPropertyDescriptor(globalThis, DISPATCHER);
  return found === undefined || found.get !== undefined;
}

// Open a connection as undici asks for one.
function connect(options, callback) {
  const secure = options.protocol === 'https:';
  tunnel.open(options.hostname, options.port || (secure ? 443 : 80), (error, socket) => {
    if (error || !secure) {
      callback(error, socket);
      return;
    }
    const servername = options.servername || options.hostname;
    const inner = tls.connect({ socket, servername, ALPNProtocols: ['http/1.1'] });
    inner.once('error', callback);
    inner.once('secureConnect', () => {
      inner.removeListener('error', callback);
      callback(null, inner);
    });
  });
}

exports.start = () => {
  const known = process.allowedNodeEnvironmentFlags.has('--use-env-proxy');
  const { fetch } = globalThis;
  if (known || !process.env.HTTPS_PROXY || typeof fetch !== 'function') return;
  const prepare = () => {
    if (!isWaiting()) return; // the program's own
    delete globalThis[DISPATCHER];
    void globalThis.Headers; // has Node load its client, which makes the dispatcher
    const { constructor: Agent } = globalThis[DISPATCHER] || {};
    if (Agent !== undefined) globalThis[DISPATCHER] = new Agent({ connect });
  };
  let prepared = false;
  const prepareOnce = () => {
    if (prepared) return;
    prepared = true;
    try {
      prepare();
    } catch (error) {
      require('./notes.cjs').write('problem', `proxy: ${error.message}`);
    }
  };
  // A client of the same kind that the program loads (undici) asks whether there is a dispatcher, and else makes one that is
  // none of the program's choice either.
  if (globalThis[DISPATCHER] === undefined) {
    Object.defineProperty(globalThis, DISPATCHER, {
      configurable: true,
      get() {
        prepareOnce();
        return isWaiting() ? undefined : globalThis[DISPATCHER];
      },
      set(value) {
        Object.defineProperty(globalThis, DISPATCHER, { value, writable: true, configurable: false });
      },
    });
  }
  globalThis.fetch = function fetching(...words) {
    prepareOnce();
    return fetch.apply(this, words);
  };
  // Each of these has Node load its client, too. The dispatcher that this makes is not the program's own.
  for (const name of LOADING) {
    const found = Object.getOwnPropertyDescriptor(globalThis, name);
    if (found === undefined || found.get === undefined || !found.configurable) continue;
    Object.defineProperty(globalThis, name, {
      ...found,
      get() {
        prepareOnce();
        return found.get.call(this);
      },
    });
  }
};
