// The openai SDK for node, by its Responses API: plain calls, the accumulating helper, `parse`, and a loop over tools.
import OpenAI, { AzureOpenAI } from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { Person, look_up, pay } from "./tools.mjs";

const open = (asked) => {
  const settings = { apiKey: "k", maxRetries: asked.retries ?? 0, defaultHeaders: asked.headers };
  if (!asked.azure) return new OpenAI({ baseURL: asked.url, ...settings });
  return new AzureOpenAI({ endpoint: asked.url.replace(/\/v1$/, ""), apiVersion: "2025-04-01-preview", ...settings });
};

const fields = (asked) => ({ model: asked.model, input: asked.messages, ...asked.fields });

const said = (response) => ({
  text: response.output_text, reason: response.incomplete_details?.reason ?? null, status: response.status,
  raw: response,
});

export async function chat(asked) {
  const client = open(asked);
  if (!asked.stream) return said(await client.responses.create(fields(asked)));
  const events = [];
  for await (const event of await client.responses.create({ ...fields(asked), stream: true })) events.push(event);
  const text = events.filter((each) => each.type === "response.output_text.delta").map((each) => each.delta).join("");
  return { ...said(events.at(-1).response), text, events };
}

export async function helper(asked) {
  const stream = open(asked).responses.stream(fields(asked));
  const kinds = [];
  let text = "";
  for await (const event of stream) {
    kinds.push(event.type);
    if (event.type === "response.output_text.done") text += event.text;
  }
  return { ...said(await stream.finalResponse()), text, kinds };
}

export async function shape(asked) {
  const body = { ...fields(asked), text: { format: zodTextFormat(Person, "person") } };
  const responses = open(asked).responses;
  const response = asked.stream ? await responses.stream(body).finalResponse() : await responses.parse(body);
  return response.output_parsed;
}

const TOOLS = { pay, look_up };

export async function agent(asked) {
  const client = open(asked);
  const tools = Object.entries(TOOLS).map(([name, { description, schema }]) => ({
    type: "function", name, description, strict: false, parameters: z.toJSONSchema(schema),
  }));
  const input = [...asked.messages];
  for (let turn = 0; turn < 4; turn++) {
    const body = { ...fields(asked), input, tools };
    const response = asked.stream ? await client.responses.stream(body).finalResponse() : await client.responses.create(body);
    const calls = response.output.filter((item) => item.type === "function_call");
    if (!calls.length) return said(response);
    input.push(...response.output);
    for (const call of calls) {
      const output = TOOLS[call.name].run(JSON.parse(call.arguments));
      input.push({ type: "function_call_output", call_id: call.call_id, output });
    }
  }
  throw new Error("the model goes on calling");
}

export async function kept(asked) {
  const client = open(asked);
  if (asked.stream) {
    const events = [];
    for await (const event of await client.responses.retrieve("resp_1", { stream: true })) events.push(event);
    const text = events.filter((each) => each.type === "response.output_text.delta").map((each) => each.delta).join("");
    return { ...said(events.at(-1).response), text };
  }
  const found = said(await client.responses.retrieve("resp_1"));
  await client.responses.delete("resp_1");
  return found;
}

export async function items(asked) {
  const found = [];
  for await (const item of open(asked).responses.inputItems.list("resp_1")) found.push(...item.content);
  return found.map((part) => part.text);
}

export async function cancelled(asked) {
  return (await open(asked).responses.cancel("resp_1")).status;
}

export async function piece(asked) {
  const events = [];
  for await (const event of await open(asked).responses.retrieve("resp_1", { stream: true, starting_after: 3 })) events.push(event);
  return events;
}
