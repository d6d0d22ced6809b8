// Runs the client libraries in JavaScript as an application does: a line of JSON asks, a line of JSON says what came out.
// The same lines as `client.py`'s; `driver.py` is the other end.
import { createInterface } from "node:readline";
import { RAN } from "./tools.mjs";

const LIBRARIES = {
  openai_node: "./with_openai.mjs", vercel: "./with_vercel.mjs", ollama_node: "./with_ollama.mjs",
  anthropic_node: "./with_anthropic.mjs", openai_node_responses: "./with_openai_responses.mjs",
  vercel_responses: "./with_vercel.mjs", mcp_node: "./with_mcp.mjs", parsers_node: "./with_parsers.mjs",
};

function told(error) {
  const kinds = [];
  for (let at = error; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) kinds.push(at.constructor?.name);
  return { kinds, text: String(error), trace: `${error?.stack}\ncause: ${error?.cause ?? error?.lastError ?? ""}` };
}

async function done(asked) {
  RAN.length = 0;
  const library = await import(LIBRARIES[asked.sdk.replace(/_messages$/, "")]);
  try {
    return { value: (await library[asked.do](asked)) ?? null, ran: [...RAN] };
  } catch (error) {
    return { error: told(error), ran: [...RAN] };
  }
}

console.log = console.info = console.error; // what libraries print stands between no two answers

process.on("unhandledRejection", (error) => {
  process.stderr.write(`unhandled: ${error?.stack}\n`);
});

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await done(JSON.parse(line))) + "\n");
}
process.exit(0); // connections that are kept open for the next request would hold the process for seconds
