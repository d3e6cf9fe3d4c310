// What browser.mjs runs inside of the page.
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { runCases } from "./cases.mjs";

const transports = [
  ["connect, JSON", createConnectTransport, {}],
  ["connect, binary", createConnectTransport, { useBinaryFormat: true }],
  ["connect, GET", createConnectTransport, { useHttpGet: true }],
  ["grpc-web", createGrpcWebTransport, {}],
];

export async function run({ demo, label, descriptors }) {
  const bytes = Uint8Array.from(atob(descriptors), (char) => char.charCodeAt(0));
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
  const all = { lines: [], failed: 0 };
  for (const [name, create, options] of transports) {
    const transport = create({ baseUrl: demo, ...options });
    const echo = createClient(registry.getService("echo.v1.EchoService"), transport);
    // A browser streams no requests.
    const { lines, failed } = await runCases(`${label}, ${name}`, { echo }, []);
    all.lines.push(...lines);
    all.failed += failed;
  }
  return all;
}
