// A connection that the proxy leads to its target.
'use strict';

const http = require('http');
const net = require('net');

const { connect } = net;

// As it was at the start: a program may take its variables away.
const proxy = process.env.HTTPS_PROXY ? new URL(process.env.HTTPS_PROXY) : undefined;

// Where the proxy is, as `net.connect` takes it.
function address() {
  const { hostname, port } = proxy;
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 80) };
}

// Say whether the proxy itself is meant.
exports.isProxy = (host, port) => {
  const place = address();
  return host === place.host && Number(port) === place.port;
};

// Open a connection to a target, for `callback(error, socket)`.
exports.open = (host, port, callback) => {
  const { username, password } = proxy;
  const target = `${net.isIPv6(host) ? `[${host}]` : host}:${port}`;
  const headers = { host: target };
  if (username) {
    const words = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    headers['proxy-authorization'] = `Basic ${Buffer.from(words).toString('base64')}`;
  }
  // With a connection of its own it asks no agent, so that those can be led here.
  const request = http.request({
    createConnection: () => connect(address()),
    headers,
    method: 'CONNECT',
    path: target,
  });
  request.once('error', callback);
  request.once('connect', (answer, socket) => {
    if (answer.statusCode === 200) {
      callback(null, socket);
    } else {
      socket.destroy();
      callback(new Error(`the proxy answered CONNECT ${target} with ${answer.statusCode}`));
    }
  });
  request.end();
};
