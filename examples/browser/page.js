/** The user interface of the page. `?model=other.tflite` in the address loads another file. */

import { drawAttention } from "./attention.js";
import { WorkerTranslator } from "./client.js";
import {
  byId, describe, fail, loadWithProgress, setStatus, showIncomplete, shownTime,
} from "./interface.js";

async function load() {
  const translator = await loadWithProgress(WorkerTranslator);
  const limit = `up to ${translator.metadata.max_length} tokens`;
  byId("metadata").textContent = describe(translator.metadata, limit);
  byId("translate").disabled = false;
  setStatus("Ready.");
  return translator;
}

async function translate(translator) {
  setStatus("Translating …");
  show(await translator.translate(byId("source").value), translator.metadata.max_length);
}

function show(result, limit) {
  byId("target").textContent = result.text;
  byId("truncated").hidden = !result.truncated;
  byId("truncated").textContent = `truncated: longer than the model’s maximum of ${limit} tokens`;
  showIncomplete(result);
  byId("attention").hidden = !result.alignment;
  if (result.alignment) {
    drawAttention(byId("weights"), result.source, result.target, result.alignment);
  }
  setStatus(shownTime(result.milliseconds));
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
