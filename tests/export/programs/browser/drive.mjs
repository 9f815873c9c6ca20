/**
 * Drives a headless Chromium: `node drive.mjs CHROMIUM EMPTY_FOLDER`.
 *
 * Reads one step per line from standard input, `{"method": ..., "params": ...}` in the DevTools
 * protocol, for the only open page, or with `"worker": true` for the worker that the page started
 * last. Answers each step with a line: its result, or `{"error"}`.
 */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [chromium, folder] = process.argv.slice(2);
const flags = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--window-size=1000,900", "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
  `--user-data-dir=${folder}`, "--remote-debugging-pipe",
];
// The protocol uses two pipes, 3 and 4, so that no WebSocket is needed.
const stdio = ["ignore", "ignore", "ignore", "pipe", "pipe"];
const browser = spawn(chromium, flags, { stdio });
const waiting = new Map();
let rest = "";
let number = 0;
let worker; // its session

browser.stdio[4].setEncoding("utf8").on("data", (data) => {
  const messages = (rest + data).split("\0");
  rest = messages.pop();
  for (const { id, result, error, method, params } of messages.map((text) => JSON.parse(text))) {
    if (method === "Target.attachedToTarget" && params.targetInfo.type === "worker") {
      worker = params.sessionId;
    }
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
const attach = { autoAttach: true, waitForDebuggerOnStart: false, flatten: true };
await send("Target.setAutoAttach", attach, sessionId);
for await (const line of createInterface({ input: process.stdin })) {
  const { method, params, worker: inWorker } = JSON.parse(line);
  console.log(JSON.stringify(await send(method, params, inWorker ? worker : sessionId)));
}
await Promise.race([send("Browser.close"), new Promise((resolve) => browser.on("exit", resolve))]);
