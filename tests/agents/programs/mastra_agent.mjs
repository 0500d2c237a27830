// Mastra with OpenAI's Responses.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

// From where it is installed, since this file stands elsewhere.
const require = createRequire(`${process.env.MODULES}/`);
const { Agent } = await import(require.resolve("@mastra/core/agent"));
const { createTool } = await import(require.resolve("@mastra/core/tools"));
const { openai } = await import(require.resolve("@ai-sdk/openai"));
const { z } = await import(require.resolve("zod"));

const shop = "https://api.shop.example";
const inputSchema = z.object({ number: z.number() });
const json = { "content-type": "application/json" };
const post = (number) => ({ method: "POST", headers: json, body: JSON.stringify({ item: number }) });
const tools = {
  look_up: createTool({
    id: "look_up",
    description: "Look up an item of the shop.",
    inputSchema,
    execute: async ({ number }) => (await fetch(`${shop}/items/${number}`)).text(),
  }),
  place_order: createTool({
    id: "place_order",
    description: "Order an item of the shop.",
    inputSchema,
    execute: async ({ number }) => (await fetch(`${shop}/orders`, post(number))).text(),
  }),
  read_notes: createTool({
    id: "read_notes",
    description: "Read the notes of the user.",
    inputSchema: z.object({}),
    execute: () => readFile("notes.txt", "utf8"),
  }),
};
const agent = new Agent({
  id: "buyer",
  name: "buyer",
  instructions: "Buy what the notes say.",
  model: openai("gpt-5.1"),
  tools,
});
const { text } = await agent.generate(process.argv[2]);
console.log(text);
