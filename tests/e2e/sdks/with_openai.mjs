// The openai SDK for node: plain calls, the accumulating helper, `parse`, and `runTools`.
import OpenAI, { AzureOpenAI } from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { Person, look_up, pay } from "./tools.mjs";

const open = (asked) => {
  const settings = { apiKey: "k", maxRetries: asked.retries ?? 0, defaultHeaders: asked.headers };
  if (!asked.azure) return new OpenAI({ baseURL: asked.url, ...settings });
  return new AzureOpenAI({ endpoint: asked.url.replace(/\/v1$/, ""), apiVersion: "2024-10-21", ...settings });
};

const fields = (asked) => ({ model: asked.model, messages: asked.messages, ...asked.fields });

const USAGE = { stream_options: { include_usage: true } };

export async function chat(asked) {
  const client = open(asked);
  if (!asked.stream) {
    const completion = await client.chat.completions.create(fields(asked));
    const texts = completion.choices.map((choice) => choice.message.content);
    return { text: texts[0], texts, raw: completion };
  }
  const raw = [];
  for await (const chunk of await client.chat.completions.create({ ...USAGE, ...fields(asked), stream: true })) raw.push(chunk);
  const texts = [];
  for (const { index, delta } of raw.flatMap((chunk) => chunk.choices)) texts[index] = (texts[index] ?? "") + (delta?.content ?? "");
  return { text: texts[0], texts, raw };
}

export async function helper(asked) {
  const stream = open(asked).chat.completions.stream({ ...USAGE, ...fields(asked) });
  const contents = [];
  stream.on("content", (delta) => contents.push(delta));
  const final = await stream.finalChatCompletion();
  return { text: final.choices[0].message.content, raw: [contents.join(""), final] };
}

export async function shape(asked) {
  const body = { ...fields(asked), response_format: zodResponseFormat(Person, "person") };
  const completions = open(asked).chat.completions;
  const completion = asked.stream ? await completions.stream(body).finalChatCompletion() : await completions.parse(body);
  return completion.choices[0].message.parsed;
}

export async function goes_on(asked) {
  const client = open(asked);
  const messages = [...asked.messages];
  const first = await client.chat.completions.parse({
    model: asked.model, messages, response_format: zodResponseFormat(Person, "person"), ...asked.fields,
  });
  messages.push(first.choices[0].message, { role: "user", content: "And in other words?" });
  return (await client.chat.completions.create({ model: asked.model, messages })).choices[0].message.content;
}

const runnable = (name, { description, schema, run }) => ({
  type: "function",
  function: { name, description, parameters: z.toJSONSchema(schema), parse: JSON.parse, function: run },
});

export async function agent(asked) {
  const tools = [runnable("pay", pay), runnable("look_up", look_up)];
  const runner = open(asked).chat.completions.runTools({ ...fields(asked), tools, stream: asked.stream });
  return { text: await runner.finalContent() };
}

export async function compact(asked) {
  return await open(asked).post("/responses/compact", { body: { model: asked.model, input: "hello" } });
}

export async function embed(asked) {
  return await open(asked).embeddings.create({
    model: "text-embedding-3-small", input: asked.input, encoding_format: "float",
  });
}

export async function moderate(asked) {
  return await open(asked).moderations.create({ input: asked.input });
}
