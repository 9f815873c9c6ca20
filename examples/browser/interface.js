/** What the pages share: their status line, and loading a model with a progress bar. */

export const byId = (id) => document.getElementById(id);

/** Shows the current activity or an error in the status line. */
export function setStatus(text, isError = false) {
  byId("status").textContent = text;
  byId("status").classList.toggle("error", isError);
}

/** Shows a note if an output reached its maximum length. */
export function showIncomplete({ complete }) {
  byId("incomplete").hidden = complete;
  byId("incomplete").textContent = "incomplete: the output reached its maximum length";
}

/** Shows an error, unless a newer request has replaced the one that failed. */
export function fail(error) {
  if (error?.name === "AbortError") return;
  byId("progress").hidden = true;
  setStatus(String(error?.message ?? error).split("\n")[0], true);
}

/** Loads the model that the address of the page names, in a worker of a class of `client.js`. */
export async function loadWithProgress(kind) {
  const url = new URLSearchParams(location.search).get("model") ?? "model.tflite";
  setStatus("Loading the model …");
  const model = await kind.load(url, (share) => {
    byId("progress").value = share;
    if (share === 1) setStatus("Preparing …");
  });
  byId("progress").hidden = true;
  return model;
}

/** Returns a line about a model, with its limit. */
export function describe(metadata, limit) {
  const compact = { notation: "compact", compactDisplay: "long", maximumSignificantDigits: 2 };
  const size = `${metadata.parameters.toLocaleString("en", compact)} parameters`;
  const weights = metadata.quantize === "none" ? "float32" : metadata.quantize;
  const license = metadata.license ? [`license: ${metadata.license}`] : [];
  return [size, weights, limit, ...license].join(" · ");
}

export const shownTime = (milliseconds) =>
  `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`;
