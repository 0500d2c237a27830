// Node's `fetch` follows no proxy variables before version 24; with this its connections go through the proxy. What
// the program sets as a dispatcher itself is left alone.
'use strict';

const http = require('http');
const tls = require('tls');

const DISPATCHER = Symbol.for('undici.globalDispatcher.1');

// Open a connection as undici asks for one.
function connect(options, callback) {
  const secure = options.protocol === 'https:';
  const proxy = new URL(process.env.HTTPS_PROXY);
  const target = `${options.hostname}:${options.port || (secure ? 443 : 80)}`;
  const headers = { host: target };
  if (proxy.username) {
    const words = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
    headers['proxy-authorization'] = `Basic ${Buffer.from(words).toString('base64')}`;
  }
  const request = http.request({
    agent: false,
    headers,
    host: proxy.hostname.replace(/^\[|\]$/g, ''),
    method: 'CONNECT',
    path: target,
    port: proxy.port,
  });
  request.once('error', callback);
  request.once('connect', (answer, socket) => {
    if (answer.statusCode !== 200) {
      socket.destroy();
      callback(new Error(`the proxy answered CONNECT ${target} with ${answer.statusCode}`));
    } else if (secure) {
      const servername = options.servername || options.hostname;
      const inner = tls.connect({ socket, servername, ALPNProtocols: ['http/1.1'] });
      inner.once('error', callback);
      inner.once('secureConnect', () => {
        inner.removeListener('error', callback);
        callback(null, inner);
      });
    } else {
      callback(null, socket);
    }
  });
  request.end();
}

exports.start = () => {
  const known = process.allowedNodeEnvironmentFlags.has('--use-env-proxy');
  const { fetch } = globalThis;
  if (known || !process.env.HTTPS_PROXY || typeof fetch !== 'function') return;
  const prepare = () => {
    if (globalThis[DISPATCHER] !== undefined) return; // the program's own
    void globalThis.Headers; // has Node load its client, which makes the dispatcher
    const { constructor: Agent } = globalThis[DISPATCHER] || {};
    if (Agent !== undefined) globalThis[DISPATCHER] = new Agent({ connect });
  };
  let prepared = false;
  globalThis.fetch = function fetching(...words) {
    if (!prepared) {
      prepared = true;
      try {
        prepare();
      } catch (error) {
        require('./notes.cjs').tell('problem', `proxy: ${error.message}`);
      }
    }
    return fetch.apply(this, words);
  };
};
