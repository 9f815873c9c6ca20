// The prompts of `chat.py` in llama.cpp, through the package node-llama-cpp: a line of JSON in, a
// line of JSON out. It must lie in the folder in which that package is installed.
import readline from "node:readline";
import { getLlama } from "node-llama-cpp";

const [path, positions] = process.argv.slice(2);
const llama = await getLlama({ gpu: false, build: "never", maxThreads: 1, logLevel: "error" });
const model = await llama.loadModel({ modelPath: path });
const context = await model.createContext({ contextSize: Number(positions), threads: 1 });
const sequence = context.getSequence();

function seconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { ids, begins, count } = JSON.parse(line);
  await sequence.clearHistory();
  const tokens = [], times = [seconds()];
  for await (const token of sequence.evaluate([...begins, ...ids], { temperature: 0 })) {
    tokens.push(token);
    times.push(seconds());
    if (tokens.length === count) break;
  }
  console.log(JSON.stringify({ tokens, times }));
}
process.exit(0);
