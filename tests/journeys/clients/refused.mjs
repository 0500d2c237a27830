// Ask a model once with the client that is named, and print what a person would read of the error.
const { EnvHttpProxyAgent, setGlobalDispatcher } = await import(
  Number(process.versions.node.split(".")[0]) < 22 ? "undici-for-20" : "undici"
);
setGlobalDispatcher(new EnvHttpProxyAgent());
const messages = [{ role: "user", content: "hi" }];

const clients = {
  async openai() {
    const { default: OpenAI } = await import("openai");
    await new OpenAI({ apiKey: "x" }).chat.completions.create({ model: "gpt-4o", messages });
  },
  async anthropic() {
    const { default: Anthropic } = await import("@anthropic-ai/sdk");
    await new Anthropic({ apiKey: "x" }).messages.create({ model: "claude", max_tokens: 9, messages });
  },
  async langchain() {
    const { ChatOpenAI } = await import("@langchain/openai");
    await new ChatOpenAI({ apiKey: "x", model: "gpt-4o" }).invoke("hi");
  },
  async ai() {
    const { generateText } = await import("ai");
    const { createOpenAI } = await import("@ai-sdk/openai");
    await generateText({ model: createOpenAI({ apiKey: "x" }).chat("gpt-4o"), prompt: "hi" });
  },
};

try {
  await clients[process.argv[2]]();
} catch (error) {
  console.log(`${error.name}: ${error.message}`);
  process.exit(1);
}
