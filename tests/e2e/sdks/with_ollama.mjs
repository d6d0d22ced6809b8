// The ollama client for JavaScript: chat and generate, plain and streamed, and vectors.
import { Ollama } from "ollama";

const open = (asked) => new Ollama({ host: asked.url.replace(/\/v1$/, ""), headers: asked.headers });

export async function chat(asked) {
  const fields = { model: asked.model, messages: asked.messages };
  if (!asked.stream) {
    const whole = await open(asked).chat(fields);
    return { text: whole.message.content, raw: whole };
  }
  const raw = [];
  for await (const part of await open(asked).chat({ ...fields, stream: true })) raw.push(part);
  return { text: raw.map((part) => part.message.content).join(""), raw };
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
