// The Anthropic SDK for node: plain calls, the accumulating helper, a loop over tools as its pages show it, and counting.
import Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { z } from "zod";
import { Person, look_up, pay } from "./tools.mjs";

const open = (asked) =>
  new Anthropic({
    apiKey: "k", baseURL: asked.url.replace(/\/v1$/, ""), maxRetries: asked.retries ?? 0, defaultHeaders: asked.headers,
  });

const fields = (asked) => ({ model: asked.model, messages: [...asked.messages], max_tokens: 64, ...asked.fields });

const said = (message) => ({
  text: message.content.map((block) => (block.type === "text" ? block.text : "")).join(""),
  reason: message.stop_reason,
  raw: message,
});

export async function chat(asked) {
  if (!asked.stream) return said(await open(asked).messages.create(fields(asked)));
  const raw = [];
  for await (const event of await open(asked).messages.create({ ...fields(asked), stream: true })) raw.push(event);
  return { text: raw.map((event) => (event.delta?.type === "text_delta" ? event.delta.text : "")).join(""), raw };
}

export async function helper(asked) {
  const stream = open(asked).messages.stream(fields(asked));
  const kinds = [];
  stream.on("streamEvent", (event) => kinds.push(event.type));
  return { ...said(await stream.finalMessage()), kinds };
}

export async function shape(asked) {
  const body = { ...fields(asked), output_config: { format: zodOutputFormat(Person) } };
  const { messages } = open(asked);
  const message = asked.stream ? await messages.stream(body).finalMessage() : await messages.parse(body);
  return message.parsed_output;
}

const OFFERED = { pay, look_up };
const TOOLS = Object.entries(OFFERED).map(([name, { schema }]) => ({ name, input_schema: z.toJSONSchema(schema) }));

export async function agent(asked) {
  const client = open(asked);
  const messages = [...asked.messages];
  for (let turn = 0; turn < 4; turn++) {
    const body = { ...fields(asked), messages, tools: TOOLS };
    const message = asked.stream ? await client.messages.stream(body).finalMessage() : await client.messages.create(body);
    const calls = message.content.filter((block) => block.type === "tool_use");
    if (!calls.length) return said(message);
    const results = calls.map((call) => ({
      type: "tool_result", tool_use_id: call.id, content: OFFERED[call.name].run(call.input),
    }));
    messages.push({ role: "assistant", content: message.content }, { role: "user", content: results });
  }
  throw new Error("the model goes on calling");
}

export async function count(asked) {
  const { max_tokens, ...rest } = fields(asked);
  return open(asked).messages.countTokens(rest);
}

export async function batch(asked) {
  return (await open(asked).messages.batches.create({ requests: [{ custom_id: "a", params: fields(asked) }] })).id;
}
