// The agent of framework_agents.py for the Vercel AI SDK: `framework_agent.mjs BASE`, once.
import { createRequire } from "node:module";
const require = createRequire(process.env.NODE_PATH + "/");
const { generateText, stepCountIs, tool, jsonSchema } = require("ai");
const { createOpenAI } = require("@ai-sdk/openai");

const base = process.argv[2];
const wait = () => new Promise((done) => setTimeout(done, Math.random() * 20));
const refund = tool({
  description: "Refund a charge.",
  inputSchema: jsonSchema({ type: "object", properties: { number: { type: "integer" } } }),
  execute: async ({ number }) => {
    await wait();
    const text = await (await fetch(`${base}/charges/${number}`)).text();
    await wait();
    return await (await fetch(`${base}/refunds`, { method: "POST", body: `charge=${text}` })).text();
  },
});
const openai = createOpenAI({ baseURL: `${base}/v1`, apiKey: "sk-not-a-real-key-123" });
await generateText({ model: openai.chat("gpt-4o"), tools: { refund }, stopWhen: stepCountIs(9), prompt: "refund all of them" });
