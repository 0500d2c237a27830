// Bun's `WebSocket` follows no proxy variables; with this it goes through the proxy, but where the program names one.

const real = globalThis.WebSocket;
const proxy = process.env.HTTPS_PROXY;

if (proxy && typeof real === 'function') {
  globalThis.WebSocket = new Proxy(real, {
    construct(target, [url, given, ...rest], newTarget) {
      const words = given !== null && typeof given === 'object' && !Array.isArray(given);
      const options = words ? { proxy, ...given } : { proxy, ...(given === undefined ? {} : { protocols: given }) };
      return Reflect.construct(target, [url, options, ...rest], newTarget);
    },
  });
}
