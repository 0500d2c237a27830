// The Vercel AI SDK with OpenAI's Responses.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

// From the folder that MODULES names, or the one you are in.
const require = createRequire(`${process.env.MODULES ?? `${process.cwd()}/node_modules`}/`);
const { generateText, stepCountIs, tool } = await import(require.resolve("ai"));
const { openai } = await import(require.resolve("@ai-sdk/openai"));
const { z } = await import(require.resolve("zod"));

const shop = "https://api.shop.example";
const number = z.object({ number: z.number() });
const tools = {
  look_up: tool({
    description: "Look up an item of the shop.",
    inputSchema: number,
    execute: async ({ number }) => (await fetch(`${shop}/items/${number}`)).text(),
  }),
  place_order: tool({
    description: "Order an item of the shop.",
    inputSchema: number,
    execute: async ({ number }) =>
      (
        await fetch(`${shop}/orders`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ item: number }),
        })
      ).text(),
  }),
  read_notes: tool({
    description: "Read the notes of the user.",
    inputSchema: z.object({}),
    execute: () => readFile("notes.txt", "utf8"),
  }),
};
const { text } = await generateText({
  model: openai("gpt-5.1"),
  tools,
  stopWhen: stepCountIs(10),
  prompt: process.argv[2],
});
console.log(text);
