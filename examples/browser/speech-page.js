/** The user interface of `speech.html`. `?model=other.tflite` in the address loads another file. */

import { WorkerTranscriber } from "./client.js";
import {
  byId, describe, fail, loadWithProgress, setStatus, showIncomplete, shownTime,
} from "./interface.js";
import { decodeSound, record } from "./sound.js";

let recording; // while the microphone is on

async function load() {
  const transcriber = await loadWithProgress(WorkerTranscriber);
  const { speech } = transcriber.metadata;
  byId("metadata").textContent = describe(transcriber.metadata, `up to ${speech.max_seconds} s`);
  for (const id of ["file", "record"]) byId(id).disabled = false;
  setStatus("Ready.");
  return transcriber;
}

const rateOf = ({ metadata }) => metadata.speech.sample_rate;
const longestOf = ({ metadata }) => Math.round(metadata.speech.max_seconds * rateOf({ metadata }));

async function transcribe(transcriber, samples) {
  setStatus("Transcribing …");
  const result = await transcriber.transcribe(samples);
  byId("transcript").textContent = result.text;
  showIncomplete(result);
  setStatus(shownTime(result.milliseconds));
}

async function transcribeFile(transcriber, file) {
  byId("transcript").textContent = "";
  await transcribe(transcriber, await decodeSound(await file.arrayBuffer(), rateOf(transcriber)));
}

/** Starts to record, or stops and transcribes what was said. */
async function toggle(transcriber) {
  if (recording) return recording.stop();
  byId("transcript").textContent = "";
  recording = await record(rateOf(transcriber), longestOf(transcriber));
  show(true);
  setStatus("Listening …");
  const samples = await recording.sound.finally(() => {
    recording = undefined;
    show(false);
  });
  await transcribe(transcriber, samples);
}

function show(isListening) {
  byId("record").textContent = isListening ? "Stop" : "Record";
  byId("record").setAttribute("aria-pressed", String(isListening));
  byId("file").disabled = isListening;
}

try {
  const transcriber = await load();
  byId("file").addEventListener("click", ({ target }) => {
    target.value = ""; // so that the same file can be chosen again
  });
  byId("file").addEventListener("change", ({ target }) => {
    if (target.files[0]) transcribeFile(transcriber, target.files[0]).catch(fail);
  });
  byId("record").addEventListener("click", () => toggle(transcriber).catch(fail));
} catch (error) {
  fail(error);
}
