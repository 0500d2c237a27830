// Tasks of Node's packages and of what is built in: `node sdk_node.cjs NAME BASE`. Says nothing.
// Packages are found by NODE_PATH.

const SAID = [{ role: "user", content: "refund ch_1007, naïve “quotes” — and 数字 1.0" }];
const KEY = "sk-not-a-real-key-123";

function check(answer) {
  if (!answer.ok && answer.status !== 200) throw new Error(`status ${answer.status ?? answer.statusCode}`);
  return answer;
}

function upload() {
  const form = new FormData();
  form.append("n", "1");
  form.append("f", new Blob(["text"], { type: "text/plain" }), "a.txt");
  return form;
}

async function askByFetch(fetch, url, form) {
  const all = [
    [`${url}/things?b=2&a=1&a=3`],
    [`${url}/json`, { method: "POST", body: JSON.stringify({ b: 1.5, a: SAID }), headers: { "content-type": "application/json" } }],
    [`${url}/form`, { method: "POST", body: new URLSearchParams({ a: "1", b: "ü" }) }],
    [`${url}/upload`, { method: "POST", body: form() }],
    [`${url}/bytes`, { method: "PUT", body: new Uint8Array(256).map((_, i) => i) }],
  ];
  for (const asked of all) await check(await fetch(...asked)).arrayBuffer();
  // All at once, so in any order.
  await Promise.all([...Array(8).keys()].map(async (n) => check(await fetch(`${url}/things?n=${n}`)).text()));
}

const tasks = {
  async openai(base) {
    const { OpenAI, toFile } = require("openai");
    const client = new OpenAI({ baseURL: `${base}/openai/v1`, apiKey: KEY });
    const asked = { model: "gpt-fake", messages: SAID, temperature: 0.2 };
    await client.chat.completions.create(asked);
    for await (const _ of await client.chat.completions.create({ ...asked, stream: true }));
    await client.responses.create({ model: "gpt-fake", input: "say something" });
    await client.files.create({ file: await toFile(Buffer.from('{"a": 1}\n'), "a.jsonl"), purpose: "batch" });
    await client.models.list();
  },

  async anthropic(base) {
    const { default: Anthropic } = require("@anthropic-ai/sdk");
    const client = new Anthropic({ baseURL: `${base}/anthropic`, apiKey: KEY });
    const asked = { model: "claude-fake", max_tokens: 64, messages: SAID };
    await client.messages.create(asked);
    await client.messages.stream({ ...asked, system: "be brief" }).finalText();
  },

  async axios(base) {
    const axios = require("axios");
    const client = axios.create({ baseURL: `${base}/plain/axios` });
    await client.get("/things", { params: { b: "2", a: ["1", "3"] } });
    await client.post("/json", { b: 1.5, a: SAID });
    await client.post("/form", new URLSearchParams({ a: "1", b: "ü" }));
    await client.postForm("/upload", { n: "1", f: Buffer.from("text") });
    await client.put("/bytes", Buffer.from([...Array(256).keys()]));
  },

  async undici(base) {
    const { EnvHttpProxyAgent, FormData, request, fetch, setGlobalDispatcher } = require(process.version.startsWith("v20.") ? "undici-for-20" : "undici");
    setGlobalDispatcher(new EnvHttpProxyAgent());
    const form = () => {
      const made = new FormData();
      made.append("n", "1");
      made.append("f", new Blob(["text"]), "a.txt");
      return made;
    };
    await askByFetch(fetch, `${base}/plain/undici`, form);
    const { body, statusCode } = await request(`${base}/plain/undici/request`, { method: "POST", body: "some text" });
    await body.text();
    check({ status: statusCode });
  },

  async fetch(base) {
    await askByFetch(fetch, `${base}/plain/fetch`, upload);
  },

  async https(base) {
    const https = require("node:https");
    for (const [method, path, body] of [["GET", "/things?b=2", ""], ["POST", "/text", "some text"]]) {
      await new Promise((resolve, reject) => {
        const asked = https.request(`${base}/plain/https${path}`, { method }, (answer) => {
          check({ status: answer.statusCode });
          answer.resume().on("end", resolve);
        });
        asked.on("error", reject).end(body);
      });
    }
  },

  async websocket(base) {
    // Bun's follows no variable.
    const options = typeof Bun === "undefined" ? [] : [{ proxy: process.env.HTTPS_PROXY }];
    const socket = new WebSocket(`${base}/echo/runtime`, ...options);
    const came = [];
    let wake = () => {};
    socket.onmessage = ({ data }) => { came.push(data); wake(); };
    await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onerror = reject; });
    for (const message of ["one", '{"b": 1.5, "a": "ü"}', "x".repeat(70000)]) {
      socket.send(message);
      while (!came.length) await new Promise((resolve) => { wake = resolve; });
      if (came.shift() !== message) throw new Error("another message");
    }
    const closed = new Promise((resolve) => { socket.onclose = resolve; });
    socket.close(1000, "done");
    await closed;
  },
};

const [name, base] = process.argv.slice(2);
tasks[name](base).catch((error) => {
  console.error(error);
  process.exit(1);
});
