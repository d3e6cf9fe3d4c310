// connect-node, in each of its protocols and versions of HTTP:
//   node connect-node.mjs DEMO_URL TEST_URL DESCRIPTOR_SET
import { readFileSync } from "node:fs";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { runCases } from "./cases.mjs";

const [demo, test, descriptors] = process.argv.slice(2);
const registry = createFileRegistry(
  fromBinary(FileDescriptorSetSchema, readFileSync(descriptors)),
);

const all = ["streams", "duplex", "test"];
// Over HTTP/1.1 the answer follows the whole request.
const half = ["streams", "test"];
const transports = [
  ["connect", createConnectTransport, { httpVersion: "2" }, all],
  ["connect, JSON", createConnectTransport, { httpVersion: "2", useBinaryFormat: false }, all],
  ["connect, GET", createConnectTransport, { httpVersion: "2", useHttpGet: true }, all],
  ["connect, HTTP/1.1", createConnectTransport, { httpVersion: "1.1" }, half],
  ["grpc", createGrpcTransport, { httpVersion: "2" }, all],
  ["grpc-web", createGrpcWebTransport, { httpVersion: "2" }, all],
  ["grpc-web, JSON", createGrpcWebTransport, { httpVersion: "2", useBinaryFormat: false }, all],
  ["grpc-web, HTTP/1.1", createGrpcWebTransport, { httpVersion: "1.1" }, half],
];

let failures = 0;
for (const [label, create, options, abilities] of transports) {
  const client = (service, baseUrl) =>
    createClient(registry.getService(service), create({ baseUrl, ...options }));
  const clients = {
    echo: client("echo.v1.EchoService", demo),
    test: client("grpc.testing.TestService", test),
    detail: registry.getMessage("grpc.testing.EchoStatus"),
  };
  const { lines, failed } = await runCases(`connect-node, ${label}`, clients, abilities);
  console.log(lines.join("\n"));
  failures += failed;
}
process.exit(failures === 0 ? 0 : 1);
