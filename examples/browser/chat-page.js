/** The user interface of `chat.html`. `?model=other.tflite` in the address loads another file. */

import { WorkerChat } from "./client.js";
import {
  byId, describe, fail, loadWithProgress, setStatus, showIncomplete, shownTime,
} from "./interface.js";

let begins = true; // whether the next message begins a conversation
let answering = false;

async function load() {
  const chat = await loadWithProgress(WorkerChat);
  byId("metadata").textContent = describe(chat.metadata, `${chat.metadata.max_length} positions`);
  byId("advice").hidden = !chat.metadata.advice;
  byId("advice").textContent = chat.metadata.advice ?? "";
  show(false);
  setStatus("Ready.");
  return chat;
}

async function send(chat) {
  if (answering) return;
  const content = byId("message").value;
  if (!content.trim()) return;
  show(true);
  setStatus("Answering …");
  if (begins) byId("conversation").replaceChildren();
  const question = turn("user", content);
  const answer = turn("assistant", "");
  byId("message").value = "";
  try {
    const result = await chat.send(content, (part) => {
      answer.textContent += part;
      answer.scrollIntoView({ block: "end" });
    }, begins);
    begins = false;
    showIncomplete(result);
    byId("dropped").hidden = !result.dropped;
    byId("dropped").textContent = `the model does not see the ${result.dropped} oldest messages`;
    setStatus(`first part after ${shownTime(result.first ?? 0)}, all ${shownTime(result.milliseconds)}`);
  } catch (error) {
    for (const item of [question, answer]) item.remove(); // neither is part of the conversation
    byId("message").value = content;
    throw error;
  } finally {
    show(false);
  }
}

/** Adds a message to the conversation that is shown, and returns its element. */
function turn(role, content) {
  const item = document.createElement("li");
  item.className = role;
  item.dir = "auto";
  item.textContent = content;
  byId("conversation").append(item);
  return item;
}

function show(isAnswering) {
  answering = isAnswering;
  byId("send").disabled = isAnswering;
  byId("stop").disabled = !isAnswering;
  byId("clear").disabled = isAnswering;
}

try {
  const chat = await load();
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    send(chat).catch(fail);
  });
  byId("stop").addEventListener("click", () => chat.stop());
  byId("clear").addEventListener("click", () => {
    begins = true;
    byId("conversation").replaceChildren();
    setStatus("Ready.");
  });
} catch (error) {
  fail(error);
}
