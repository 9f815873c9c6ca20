/** The user interface of the page. `?model=other.tflite` in the address loads another file. */

import { drawAttention } from "./attention.js";
import { WorkerTranslator } from "./client.js";

const byId = (id) => document.getElementById(id);
const url = new URLSearchParams(location.search).get("model") ?? "model.tflite";

/** Shows the current activity or an error in the status line. */
function setStatus(text, isError = false) {
  byId("status").textContent = text;
  byId("status").classList.toggle("error", isError);
}

async function load() {
  setStatus("Loading the model …");
  const translator = await WorkerTranslator.load(url, (share) => {
    byId("progress").value = share;
    if (share === 1) setStatus("Preparing …");
  });
  byId("progress").hidden = true;
  byId("metadata").textContent = describe(translator.metadata);
  byId("translate").disabled = false;
  setStatus("Ready.");
  return translator;
}

function describe(metadata) {
  const compact = { notation: "compact", compactDisplay: "long", maximumSignificantDigits: 2 };
  const size = `${metadata.parameters.toLocaleString("en", compact)} parameters`;
  const weights = metadata.quantize === "none" ? "float32" : metadata.quantize;
  const license = metadata.license ? [`license: ${metadata.license}`] : [];
  return [size, weights, `up to ${metadata.max_length} tokens`, ...license].join(" · ");
}

async function translate(translator) {
  setStatus("Translating …");
  show(await translator.translate(byId("source").value), translator.metadata.max_length);
}

function show(result, limit) {
  byId("target").textContent = result.text;
  byId("cut").hidden = !result.cut;
  byId("cut").textContent = `truncated: longer than the model’s maximum of ${limit} tokens`;
  byId("attention").hidden = !result.alignment;
  if (result.alignment) {
    drawAttention(byId("weights"), result.source, result.target, result.alignment);
  }
  setStatus(`${result.milliseconds.toFixed(result.milliseconds < 10 ? 1 : 0)} ms`);
}

function fail(error) {
  if (error?.name === "AbortError") return; // a newer sentence is being translated
  byId("progress").hidden = true;
  setStatus(String(error?.message ?? error).split("\n")[0], true);
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
