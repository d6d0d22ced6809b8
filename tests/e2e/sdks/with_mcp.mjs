// The MCP SDK for TypeScript: one session with a server, step by step, as an agent's host has it.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CreateMessageRequestSchema } from "@modelcontextprotocol/sdk/types.js";

export async function session(asked) {
  const client = new Client({ name: "tests", version: "1" }, { capabilities: { sampling: {} } });
  let told = [];
  client.setRequestHandler(CreateMessageRequestSchema, async (request) => {
    told.push(["sampled", request.params.messages[0].content.text]);
    return { role: "assistant", content: { type: "text", text: "blue" }, model: "m" };
  });
  const headers = asked.key ? { authorization: `Bearer ${asked.key}` } : {};
  const transport = new StreamableHTTPClientTransport(new URL(asked.url), { requestInit: { headers } });
  await client.connect(transport);
  const onprogress = (at) => told.push(["progress", at.progress, at.total ?? null, at.message ?? null]);
  const steps = {
    call: ([name, given]) => client.callTool({ name, arguments: given }, undefined, { onprogress }),
    tools: () => client.listTools(),
    resources: () => client.listResourceTemplates(),
    read: ([uri]) => client.readResource({ uri }),
    prompt: ([name, given]) => client.getPrompt({ name, arguments: given }),
  };
  const came = [];
  for (const [what, ...given] of asked.steps) {
    told = [];
    try {
      came.push({ value: await steps[what](given), told });
    } catch (error) {
      const { code, message, data } = error;
      came.push({ error: { code, message, data }, kind: error.constructor.name, text: String(error), told });
    }
  }
  await transport.terminateSession().catch((error) => told.push(["not ended", String(error)])); // a server may be gone
  await client.close();
  return came;
}
