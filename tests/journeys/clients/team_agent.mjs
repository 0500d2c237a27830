// The team of team_agents.py for the Vercel AI SDK: `team_agent.mjs BASE`.
import { createRequire } from "node:module";
const require = createRequire(process.env.NODE_PATH + "/");
const { generateText, stepCountIs, tool, jsonSchema } = require("ai");
const { createOpenAI } = require("@ai-sdk/openai");

const base = process.argv[2];
const prompts = {
  lead: "You lead a desk. Ask your people, then sum up.",
  analyst: "You find the figures of a region.",
  checker: "You check the books of a region.",
  auditor: "You audit a region, and trust nobody.",
};
const text = (name) => jsonSchema({ type: "object", properties: { [name]: { type: "string" } }, required: [name] });
const run = async (name, tools, prompt) => {
  const headers = { "x-agent": name };
  const openai = createOpenAI({ baseURL: `${base}/v1`, apiKey: "sk-not-a-real-key-123", headers });
  const model = openai.responses("gpt-4o");
  return (await generateText({ model, system: prompts[name], tools, stopWhen: stepCountIs(9), prompt })).text;
};
const ask = (name, tools) =>
  tool({ description: `Ask the ${name}.`, inputSchema: text("task"), execute: ({ task }) => run(name, tools, task) });
const look_up = tool({
  description: "Look a place up.",
  inputSchema: text("place"),
  execute: async ({ place }) => await (await fetch(`${base}/${place}`)).text(),
});
const ask_checker = ask("checker", { ask_auditor: ask("auditor", { look_up }) });
await run("lead", { ask_analyst: ask("analyst", { look_up }), ask_checker }, "Compare the regions, and say what you found.");
