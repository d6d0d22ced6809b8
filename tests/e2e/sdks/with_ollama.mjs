// The ollama client for JavaScript: chat and generate, plain and streamed, with tools, a form for the answer, and vectors.
import { Ollama } from "ollama";
import { z } from "zod";
import { Person, look_up, pay } from "./tools.mjs";

const open = (asked) => new Ollama({ host: asked.url.replace(/\/v1$/, ""), headers: asked.headers });

async function chatted(asked, more = {}) {
  const fields = { model: asked.model, messages: asked.messages, ...more };
  if (!asked.stream) return [await open(asked).chat(fields)];
  const parts = [];
  for await (const part of await open(asked).chat({ ...fields, stream: true })) parts.push(part);
  return parts;
}

const said = (parts) => parts.map((part) => part.message.content).join("");

export async function chat(asked) {
  const parts = await chatted(asked);
  return { text: said(parts), raw: asked.stream ? parts : parts[0] };
}

export async function shape(asked) {
  return Person.parse(JSON.parse(said(await chatted(asked, { format: z.toJSONSchema(Person) }))));
}

const OFFERED = { pay, look_up };
const TOOLS = Object.entries(OFFERED).map(([name, { description, schema }]) => ({
  type: "function", function: { name, description, parameters: z.toJSONSchema(schema) },
}));

export async function agent(asked) {
  const messages = [...asked.messages];
  for (let turn = 0; turn < 4; turn++) {
    const parts = await chatted({ ...asked, messages }, { tools: TOOLS });
    const message = { ...parts.at(-1).message, content: said(parts) };
    const calls = parts.flatMap((part) => part.message.tool_calls ?? []);
    if (!calls.length) return { text: message.content };
    messages.push({ ...message, tool_calls: calls });
    for (const { function: call } of calls) {
      messages.push({ role: "tool", content: OFFERED[call.name].run(call.arguments), tool_name: call.name });
    }
  }
  throw new Error("the model goes on calling");
}

export async function generate(asked) {
  const fields = { model: asked.model, prompt: asked.messages.at(-1).content };
  if (!asked.stream) return { text: (await open(asked).generate(fields)).response };
  let text = "";
  for await (const part of await open(asked).generate({ ...fields, stream: true })) text += part.response;
  return { text };
}

export async function embed(asked) {
  return (await open(asked).embed({ model: asked.model, input: asked.input })).embeddings;
}

export async function models(asked) {
  return (await open(asked).list()).models;
}

export async function show(asked) {
  return await open(asked).show({ model: asked.model });
}
