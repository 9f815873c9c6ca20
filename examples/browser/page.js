/** What the page shows, and when. `?model=other.tflite` in the address takes another file. */

import { drawAttention } from "./attention.js";
import { WorkerTranslator } from "./client.js";

const byId = (id) => document.getElementById(id);
const url = new URLSearchParams(location.search).get("model") ?? "model.tflite";

/** One line: what goes on, or what went wrong. */
function say(text, isError = false) {
  byId("status").textContent = text;
  byId("status").classList.toggle("error", isError);
}

async function load() {
  say("Loading the model …");
  const translator = await WorkerTranslator.load(url, (share) => {
    byId("progress").value = share;
    if (share === 1) say("Preparing …");
  });
  byId("progress").hidden = true;
  byId("metadata").textContent = describe(translator.metadata);
  byId("translate").disabled = false;
  say("Ready.");
  return translator;
}

function describe(metadata) {
  const compact = { notation: "compact", compactDisplay: "long", maximumSignificantDigits: 2 };
  const size = `${metadata.parameters.toLocaleString("en", compact)} parameters`;
  const weights = metadata.quantize === "none" ? "float32" : metadata.quantize;
  const license = metadata.license ? [`license: ${metadata.license}`] : [];
  return [size, weights, `up to ${metadata.max_length} pieces`, ...license].join(" · ");
}

async function translate(translator) {
  say("Translating …");
  show(await translator.translate(byId("source").value), translator.metadata.max_length);
}

function show(result, limit) {
  byId("target").textContent = result.text;
  byId("cut").hidden = !result.cut;
  byId("cut").textContent = `cut: longer than the model’s limit of ${limit} pieces`;
  byId("attention").hidden = !result.alignment;
  if (result.alignment) {
    drawAttention(byId("weights"), result.source, result.target, result.alignment);
  }
  say(`${result.milliseconds.toFixed(result.milliseconds < 10 ? 1 : 0)} ms`);
}

function fail(error) {
  if (error?.name === "AbortError") return; // a newer sentence is being translated
  byId("progress").hidden = true;
  say(String(error?.message ?? error).split("\n")[0], true);
}

try {
  const translator = await load();
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    translate(translator).catch(fail);
  });
} catch (error) {
  fail(error);
}
