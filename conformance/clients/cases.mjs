// What each client of Connect for ECMAScript asks of Quill's servers, in Node
// and in a browser alike.
import { Code, ConnectError } from "@connectrpc/connect";

const ECHO_INITIAL = "x-grpc-test-echo-initial";
const ECHO_TRAILING = "x-grpc-test-echo-trailing-bin";

function equal(what, came, expected) {
  const [left, right] = [came, expected].map((value) => JSON.stringify(value));
  if (left !== right) throw new Error(`${what}: ${left} instead of ${right}`);
}

async function collect(stream) {
  const messages = [];
  for await (const { message } of stream) messages.push(message);
  return messages;
}

async function failure(call) {
  try {
    await call();
  } catch (error) {
    return ConnectError.from(error);
  }
  throw new Error("the call succeeded");
}

async function* each(...messages) {
  for (const message of messages) yield { message };
}

// `needs` is what a transport must be able to do: stream requests, answer them
// as they come (duplex), reach the interop server (test).
export const cases = [
  {
    name: "unary",
    run: async ({ echo }) => equal("message", (await echo.echo({ message: "hi" })).message, "hi"),
  },
  {
    name: "server stream",
    run: async ({ echo }) =>
      equal("messages", await collect(echo.expand({ message: "a", count: 3 })), ["a", "a", "a"]),
  },
  {
    name: "client stream",
    needs: ["streams"],
    run: async ({ echo }) => equal("count", (await echo.collect(each("a", "b"))).count, 2),
  },
  {
    name: "bidi stream",
    needs: ["duplex"],
    run: async ({ echo }) => {
      let answered;
      async function* pings() {
        for (const message of ["a", "b", "c"]) {
          const answer = new Promise((resolve) => (answered = resolve));
          yield { message };
          // The next request waits for this one's answer.
          await answer;
        }
      }
      const messages = [];
      for await (const { message } of echo.chat(pings())) {
        messages.push(message);
        answered();
      }
      equal("messages", messages, ["a", "b", "c"]);
    },
  },
  {
    name: "error",
    run: async ({ echo }) => {
      const message = "no such thing: 100% \u263a\n";
      const error = await failure(() => echo.echo({ errorCode: 5, errorMessage: message }));
      equal("error", [error.code, error.rawMessage], [Code.NotFound, message]);
    },
  },
  {
    name: "error inside a stream",
    run: async ({ echo }) => {
      const messages = [];
      const error = await failure(async () => {
        for await (const { message } of echo.expand({ message: "a", errorCode: 9, errorAfter: 2 }))
          messages.push(message);
      });
      equal("messages", messages, ["a", "a"]);
      equal("code", error.code, Code.FailedPrecondition);
    },
  },
  {
    name: "deadline",
    run: async ({ echo }) => {
      const error = await failure(() => echo.echo({ delayMs: 20000 }, { timeoutMs: 100 }));
      equal("code", error.code, Code.DeadlineExceeded);
    },
  },
  {
    name: "deadline of a stream",
    run: async ({ echo }) => {
      const slow = { message: "a", count: 2, intervalMs: 20000 };
      const error = await failure(() => collect(echo.expand(slow, { timeoutMs: 300 })));
      equal("code", error.code, Code.DeadlineExceeded);
    },
  },
  {
    name: "cancellation",
    run: async ({ echo }) => {
      const given = new AbortController();
      const error = await failure(async () => {
        for await (const _ of echo.expand({ message: "a" }, { signal: given.signal })) given.abort();
      });
      equal("code", error.code, Code.Canceled);
      equal("after it", (await echo.echo({ message: "hi" })).message, "hi");
    },
  },
  {
    name: "large messages",
    needs: ["test"],
    run: async ({ test }) => {
      const body = new Uint8Array(271828);
      const answer = await test.unaryCall({ payload: { body }, responseSize: 314159 });
      equal("bytes", answer.payload.body.length, 314159);
    },
  },
  {
    name: "metadata",
    needs: ["test"],
    run: async ({ test }) => {
      const seen = {};
      await test.unaryCall(
        { responseSize: 1 },
        {
          headers: { [ECHO_INITIAL]: "value", [ECHO_TRAILING]: "CgsK" },
          onHeader: (headers) => (seen.initial = headers.get(ECHO_INITIAL)),
          onTrailer: (trailers) => (seen.trailing = trailers.get(ECHO_TRAILING)),
        },
      );
      equal("metadata", seen, { initial: "value", trailing: "CgsK" });
    },
  },
  {
    name: "error details",
    needs: ["test"],
    run: async ({ test, detail }) => {
      const status = { code: 7, message: "not yours" };
      const error = await failure(() => test.unaryCall({ responseStatus: status }));
      equal("error", [error.code, error.rawMessage], [Code.PermissionDenied, "not yours"]);
      const details = error.findDetails(detail).map(({ code, message }) => ({ code, message }));
      equal("details", details, [status]);
    },
  },
  {
    name: "unimplemented",
    needs: ["test"],
    run: async ({ test }) => {
      const error = await failure(() => test.unimplementedCall({}));
      equal("code", error.code, Code.Unimplemented);
    },
  },
];

// Runs every case that a client of these abilities can; gives the lines to print
// and how many failed.
export async function runCases(label, clients, abilities) {
  const lines = [];
  let failed = 0;
  for (const { name, needs = [], run } of cases) {
    if (!needs.every((need) => abilities.includes(need))) continue;
    let verdict = "ok";
    try {
      await run(clients);
    } catch (error) {
      verdict = `FAILED: ${error}`;
      failed += 1;
    }
    lines.push(`${label}: ${name}: ${verdict}`);
  }
  return { lines, failed };
}
