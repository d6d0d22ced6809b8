// Every SDK's own parser in JavaScript, given bytes instead of a server: `with_parsers.py` in another language.
import Anthropic from "@anthropic-ai/sdk";
import { JSONRPCMessageSchema } from "@modelcontextprotocol/sdk/types.js";
import { Ollama } from "ollama";
import OpenAI from "openai";

const messages = [{ role: "user", content: "hi" }];

const fetches = (answer) => async () => {
  const body = new ReadableStream({
    start(controller) {
      for (const piece of answer.pieces) controller.enqueue(Uint8Array.from(Buffer.from(piece, "latin1")));
      controller.close();
    },
  });
  return new Response(body, { status: answer.status, headers: { "content-type": answer.media } });
};

const openai = (answer) =>
  new OpenAI({ apiKey: "k", baseURL: "http://localhost/v1", maxRetries: 0, fetch: fetches(answer) });
const anthropic = (answer) =>
  new Anthropic({ apiKey: "k", baseURL: "http://localhost", maxRetries: 0, fetch: fetches(answer) });
const ollama = (answer) => new Ollama({ host: "http://localhost:11434", fetch: fetches(answer) });

async function every(stream) {
  const found = [];
  for await (const each of await stream) found.push(each);
  return found;
}

const chat = async (answer, stream) => {
  const given = { model: "m", messages };
  if (!stream) return openai(answer).chat.completions.create(given);
  await every(openai(answer).chat.completions.create({ ...given, stream }));
  // The helper raises by itself at ends like these, once all has been read.
  const ends = (error) => {
    if (!["ContentFilterFinishReasonError", "LengthFinishReasonError"].includes(error.constructor.name)) throw error;
  };
  return openai(answer).chat.completions.stream(given).finalChatCompletion().catch(ends);
};

const completions = async (answer, stream) => {
  const made = openai(answer).completions.create({ model: "m", prompt: "hi", stream });
  return stream ? every(made) : made;
};

const responses = async (answer, stream) => {
  const given = { model: "m", input: "hi" };
  if (!stream) return openai(answer).responses.create(given);
  await every(openai(answer).responses.create({ ...given, stream }));
  return openai(answer).responses.stream(given).finalResponse();
};

const anthropics = async (answer, stream) => {
  const given = { model: "m", messages, max_tokens: 9 };
  if (!stream) return anthropic(answer).messages.create(given);
  await every(anthropic(answer).messages.create({ ...given, stream }));
  return anthropic(answer).messages.stream(given).finalMessage();
};

const ollamaChat = async (answer, stream) => {
  const made = ollama(answer).chat({ model: "m", messages, stream });
  return stream ? every(made) : made;
};

const ollamaGenerate = async (answer, stream) => {
  const made = ollama(answer).generate({ model: "m", prompt: "hi", stream });
  return stream ? every(made) : made;
};

const mcp = async (answer, stream) => {
  if (answer.status !== 200) return;
  const data = Buffer.from(answer.pieces.join(""), "latin1").toString();
  const texts = stream ? data.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)) : [data];
  for (const text of texts.filter((each) => each)) JSONRPCMessageSchema.parse(JSON.parse(text));
};

const USES = {
  "openai.chat": chat, "openai.completions": completions, "openai.responses": responses, "anthropic.messages": anthropics,
  "ollama.chat": ollamaChat, "ollama.generate": ollamaGenerate, mcp,
};

export async function read(asked) {
  const told = [];
  for (const answer of asked.answers) {
    try {
      await USES[answer.surface](answer, answer.media !== "application/json");
      told.push({ error: null, text: "", wrong: [] });
    } catch (error) {
      const kinds = [];
      for (let at = error; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) kinds.push(at.constructor?.name);
      told.push({ error: kinds, text: String(error).slice(0, 500), wrong: [] });
    }
  }
  return told;
}
