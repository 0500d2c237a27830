// Node's `http` and `https` follow no proxy variables before version 24, and after that only by their global agents; with
// this the connections of all agents go through the proxy. Agents that make connections in a way of their own, as
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
    const led = this && this.options && this.options.proxyEnv; // by Node itself
    if (led || socketPath || socket || !host || typeof callback !== 'function' || tunnel.isProxy(host, port)) {
      return real.apply(this, words);
    }
    tunnel.open(host, port, (error, opened) => {
      if (error) {
        callback(error);
        return;
      }
      // An agent counts on it that its connections have its timeout.
      if (options.timeout) opened.setTimeout(options.timeout);
      const made = secure ? real.call(this, { ...options, socket: opened }) : opened;
      if (secure && options.timeout) made.setTimeout(options.timeout);
      callback(null, made);
    });
    return undefined; // the agent waits for the callback
  };
}

exports.start = () => {
  if (!process.env.HTTPS_PROXY) return;
  lead(http.Agent.prototype, false);
  lead(https.Agent.prototype, true);
};
