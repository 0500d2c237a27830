// Node's `http` and `https` follow no proxy variables before version 24; with this the connections of their agents go
// through the proxy, also of agents that the program makes. Agents that make connections in a way of their own, as
// those of proxies do, are left alone.
'use strict';

const http = require('http');
const https = require('https');
const tunnel = require('./tunnel.cjs');

function lead(prototype, secure) {
  const real = prototype.createConnection;
  prototype.createConnection = function createConnection(...words) {
    const [options, callback] = words;
    const { host, port, socketPath, socket } = options || {};
    if (socketPath || socket || !host || typeof callback !== 'function' || tunnel.isProxy(host, port)) {
      return real.apply(this, words);
    }
    tunnel.open(host, port, (error, opened) => {
      if (error) callback(error);
      else callback(null, secure ? real.call(this, { ...options, socket: opened }) : opened);
    });
    return undefined; // the agent waits for the callback
  };
}

exports.start = () => {
  const known = process.allowedNodeEnvironmentFlags.has('--use-env-proxy');
  if (known || !process.env.HTTPS_PROXY) return;
  lead(http.Agent.prototype, false);
  lead(https.Agent.prototype, true);
};
