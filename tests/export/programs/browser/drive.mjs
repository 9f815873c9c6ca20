/**
 * Drives a headless Chromium: `node drive.mjs CHROMIUM EMPTY_FOLDER`.
 *
 * Reads one step a line from standard input, `{"method": ..., "params": ...}` of the DevTools
 * protocol, for the one page that is open, and answers each with a line: its result, or `{"error"}`.
 */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [chromium, folder] = process.argv.slice(2);
const flags = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--window-size=1000,900", `--user-data-dir=${folder}`, "--remote-debugging-pipe",
];
// The protocol comes through two pipes, 3 and 4, so that no WebSocket is needed.
const stdio = ["ignore", "ignore", "ignore", "pipe", "pipe"];
const browser = spawn(chromium, flags, { stdio });
const waiting = new Map();
let rest = "";
let number = 0;

browser.stdio[4].setEncoding("utf8").on("data", (data) => {
  const messages = (rest + data).split("\0");
  rest = messages.pop();
  for (const { id, result, error } of messages.map((message) => JSON.parse(message))) {
    waiting.get(id)?.(error ? { error } : result);
    waiting.delete(id);
  }
});
browser.on("exit", () => process.exit(waiting.size > 0 ? 1 : 0));

function send(method, params, sessionId) {
  const id = ++number;
  browser.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
  return new Promise((resolve) => waiting.set(id, resolve));
}

const { targetId } = await send("Target.createTarget", { url: "about:blank" });
const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
for await (const line of createInterface({ input: process.stdin })) {
  const { method, params } = JSON.parse(line);
  console.log(JSON.stringify(await send(method, params, sessionId)));
}
await Promise.race([send("Browser.close"), new Promise((resolve) => browser.on("exit", resolve))]);
