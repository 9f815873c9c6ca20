/**
 * Service worker with which a page of this folder works without a server.
 *
 * It stores what the server sends for a page and its workers: files, runtime and model. If the server
 * does not answer, it sends the stored files. A page registers it, and is stored from its next visit
 * on: `navigator.serviceWorker.register("offline.js")`.
 */

const STORE = "offline.js";
const METHODS = ["GET", "HEAD"]; // `onnx.js` also asks for the header of its WebAssembly

addEventListener("activate", (event) => event.waitUntil(clients.claim()));

addEventListener("fetch", (event) => {
  if (METHODS.includes(event.request.method)) event.respondWith(answer(event));
});

async function answer(event) {
  const { request } = event;
  const store = await caches.open(STORE);
  try {
    const response = await fetch(request);
    // Stored while the page reads it, so that the progress of a download is shown.
    if (request.method === "GET" && response.status === 200) {
      event.waitUntil(store.put(request, response.clone()));
      // WebKit does not ask for the script of a worker here while the server answers.
      if (new URL(request.url).pathname.endsWith("/client.js")) {
        event.waitUntil(store.add(new URL("worker.js", request.url).href));
      }
    }
    return response;
  } catch (error) {
    const stored = await store.match(request, { ignoreMethod: true });
    if (stored) return stored;
    throw error;
  }
}
