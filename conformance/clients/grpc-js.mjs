// grpc-js against Quill's servers:
//   node grpc-js.mjs DEMO_PORT TEST_PORT DESCRIPTOR_SET
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const [demo, test, descriptors] = process.argv.slice(2);
const ECHO_INITIAL = "x-grpc-test-echo-initial";
const ECHO_TRAILING = "x-grpc-test-echo-trailing-bin";

const definition = loader.loadFileDescriptorSetFromBuffer(readFileSync(descriptors));
const packages = grpc.loadPackageDefinition(definition);
const plain = grpc.credentials.createInsecure();
const echo = new packages.echo.v1.EchoService(`127.0.0.1:${demo}`, plain);
const tests = new packages.grpc.testing.TestService(`127.0.0.1:${test}`, plain);

// A unary answer with its call's head and trailers; an error is thrown.
function unary(client, method, request, metadata = new grpc.Metadata(), options = {}) {
  return new Promise((resolve, reject) => {
    const seen = {};
    const call = client[method](request, metadata, options, (error, answer) => {
      seen.answer = answer;
      if (error) reject(error);
    });
    call.on("metadata", (head) => (seen.head = head));
    // It comes after the answer.
    call.on("status", ({ metadata }) => resolve({ ...seen, trailers: metadata }));
  });
}

async function collect(call) {
  const messages = [];
  for await (const { message } of call) messages.push(message);
  return messages;
}

const deadline = (ms) => ({ deadline: Date.now() + ms });
const { status } = grpc;

const cases = {
  async unary() {
    assert.equal((await unary(echo, "echo", { message: "hi" })).answer.message, "hi");
  },
  async "server stream"() {
    assert.deepEqual(await collect(echo.expand({ message: "a", count: 3 })), ["a", "a", "a"]);
  },
  async "client stream"() {
    const answer = await new Promise((resolve, reject) => {
      const call = echo.collect((error, answer) => (error ? reject(error) : resolve(answer)));
      for (const message of ["a", "b"]) call.write({ message });
      call.end();
    });
    assert.equal(answer.count, 2);
  },
  async "bidi stream"() {
    const call = echo.chat();
    const left = ["a", "b", "c"];
    const messages = [];
    call.write({ message: left.shift() });
    for await (const { message } of call) {
      messages.push(message);
      if (left.length > 0) call.write({ message: left.shift() });
      else call.end();
    }
    assert.deepEqual(messages, ["a", "b", "c"]);
  },
  async error() {
    const details = "no such thing: 100% \u263a\n";
    const call = unary(echo, "echo", { error_code: 5, error_message: details });
    await assert.rejects(call, { code: status.NOT_FOUND, details });
  },
  async "error inside a stream"() {
    const call = collect(echo.expand({ message: "a", error_code: 9, error_after: 2 }));
    await assert.rejects(call, { code: status.FAILED_PRECONDITION });
  },
  async "error details"() {
    const call = unary(tests, "unaryCall", { response_status: { code: 7, message: "not yours" } });
    const error = await call.then(() => assert.fail("the call succeeded"), (error) => error);
    const [details] = error.metadata.get("grpc-status-details-bin");
    assert.equal(error.code, status.PERMISSION_DENIED);
    assert(details.includes("/grpc.testing.EchoStatus"));
  },
  async deadline() {
    const call = unary(echo, "echo", { delay_ms: 20000 }, new grpc.Metadata(), deadline(200));
    await assert.rejects(call, { code: status.DEADLINE_EXCEEDED });
  },
  async "deadline of a stream"() {
    const call = echo.expand({ message: "a", count: 2, interval_ms: 20000 }, deadline(500));
    await assert.rejects(collect(call), { code: status.DEADLINE_EXCEEDED });
  },
  async cancellation() {
    const call = echo.expand({ message: "a" });
    const given = (async () => {
      for await (const _ of call) call.cancel();
    })();
    await assert.rejects(given, { code: status.CANCELLED });
    await cases.unary();
  },
  async metadata() {
    const metadata = new grpc.Metadata();
    metadata.set(ECHO_INITIAL, "value");
    metadata.set(ECHO_TRAILING, Buffer.from([0, 255, 11]));
    const { head, trailers } = await unary(tests, "unaryCall", { response_size: 1 }, metadata);
    assert.deepEqual(head.get(ECHO_INITIAL), ["value"]);
    assert.deepEqual(trailers.get(ECHO_TRAILING), [Buffer.from([0, 255, 11])]);
  },
  async "large messages"() {
    const payload = { body: Buffer.alloc(271828) };
    const { answer } = await unary(tests, "unaryCall", { payload, response_size: 314159 });
    assert.equal(answer.payload.body.length, 314159);
  },
};

let failed = 0;
for (const [name, run] of Object.entries(cases)) {
  try {
    await run();
    console.log(`grpc-js: ${name}: ok`);
  } catch (error) {
    console.log(`grpc-js: ${name}: FAILED: ${error}`);
    failed += 1;
  }
}
process.exit(failed === 0 ? 0 : 1);
