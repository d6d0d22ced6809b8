// Vercel's AI SDK over the providers that speak chat completions, `@ai-sdk/openai-compatible` and `@ai-sdk/openai`, and
// over `@ai-sdk/anthropic`.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Output, embedMany, generateObject, generateText, stepCountIs, streamObject, streamText, tool } from "ai";
import { Person, look_up, pay } from "./tools.mjs";

const messages = (asked) => asked.sdk.endsWith("_messages");
const responses = (asked) => asked.sdk.endsWith("_responses"); // what `@ai-sdk/openai` speaks by itself

const provider = (asked) => {
  const common = { baseURL: asked.url, apiKey: "k", headers: asked.headers };
  if (messages(asked)) return createAnthropic(common);
  return asked.how === "openai" || responses(asked)
    ? createOpenAI(common)
    : createOpenAICompatible({ name: "guarded", includeUsage: true, supportsStructuredOutputs: true, ...common });
};

const common = (asked) => {
  const made = provider(asked);
  return {
    model: responses(asked) ? made(asked.model) : messages(asked) || asked.how === "openai" ? made.chat(asked.model) : made.chatModel(asked.model),
    messages: asked.messages,
    maxRetries: asked.retries ?? 0,
    providerOptions: asked.fields ? { [messages(asked) ? "anthropic" : "guarded"]: asked.fields } : undefined,
  };
};

// An application that streams reads errors where the SDK puts them: in parts of the full stream.
const quiet = { onError: () => {} };

async function read(stream) {
  const parts = [];
  for await (const part of stream) {
    if (part.type === "error") throw part.error;
    parts.push(part);
  }
  return parts;
}

const DATED = new Set(["response", "id", "timestamp", "headers", "request", "performance", "providerMetadata"]);
const plain = (value) => JSON.parse(JSON.stringify(value, (key, each) => (DATED.has(key) ? undefined : each)));

export async function chat(asked) {
  if (!asked.stream) {
    const found = await generateText(common(asked));
    const { text, reasoningText, finishReason, usage, content } = found;
    return { text, raw: plain({ reasoningText, finishReason, usage, content }) };
  }
  const found = streamText({ ...common(asked), ...quiet });
  const parts = await read(found.fullStream);
  return { text: await found.text, raw: plain([parts, await found.usage, await found.finishReason]) };
}

export const helper = (asked) => chat({ ...asked, stream: true });

export async function shape(asked) {
  const given = { ...common(asked), schema: Person, schemaName: "person" };
  if (!asked.stream) return (await generateObject(given)).object;
  const found = streamObject({ ...given, ...quiet });
  await read(found.fullStream);
  return await found.object;
}

export async function output(asked) {
  const given = { ...common(asked), output: Output.object({ schema: Person }) };
  if (!asked.stream) return (await generateText(given)).output;
  const found = streamText({ ...given, ...quiet });
  await read(found.fullStream);
  return await found.output;
}

const runnable = ({ description, schema, run }) =>
  tool({ description, inputSchema: schema, execute: async (given) => run(given) });

export async function agent(asked) {
  const given = {
    ...common(asked),
    tools: { pay: runnable(pay), look_up: runnable(look_up) },
    stopWhen: stepCountIs(4),
  };
  if (!asked.stream) {
    const found = await generateText(given);
    return { text: found.text, finish: found.finishReason };
  }
  const found = streamText({ ...given, ...quiet });
  await read(found.fullStream);
  return { text: await found.text, finish: await found.finishReason };
}

export async function embed(asked) {
  const made = provider(asked);
  const model = made.embeddingModel("text-embedding-3-small");
  return (await embedMany({ model, values: asked.input, maxRetries: 0 })).embeddings;
}
