// connect-web in Chromium, from a page of another origin than the demo's:
//   node browser.mjs PAGE_PORT DEMO_URL DESCRIPTOR_SET
// The demo must allow the origin http://127.0.0.1:PAGE_PORT.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const [port, demo, descriptors] = process.argv.slice(2);
const bundle = await build({
  absWorkingDir: dirname(fileURLToPath(import.meta.url)),
  entryPoints: ["page.mjs"],
  bundle: true,
  format: "esm",
  write: false,
});
const script = bundle.outputFiles[0].text;
const server = createServer((request, response) => {
  const isScript = request.url === "/page.js";
  response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
  response.end(isScript ? script : "<!doctype html><title>Quill</title>");
});
const listening = (port) => new Promise((done) => server.listen(port, "127.0.0.1", done));
await listening(Number(port));

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
// Runs the cases in a page of this host; another host is another origin.
async function run(host, label) {
  const page = await browser.newPage();
  await page.goto(`http://${host}:${port}/`);
  const ask = { demo, label, descriptors: readFileSync(descriptors).toString("base64") };
  return page.evaluate(async (ask) => (await import("/page.js")).run(ask), ask);
}

let failures = 0;
try {
  const allowed = await run("127.0.0.1", "connect-web");
  console.log(allowed.lines.join("\n"));
  failures += allowed.failed;
  // The demo allows the one origin alone, so that no answer may be read here.
  const refused = await run("localhost", "another origin");
  const read = refused.lines.filter((line) => /: (unary|server stream|error): ok$/.test(line));
  for (const line of read) console.log(line);
  console.log(`connect-web: another origin is refused: ${read.length === 0 ? "ok" : "FAILED"}`);
  failures += read.length;
} finally {
  await browser.close();
  server.close();
}
process.exit(failures === 0 ? 0 : 1);
