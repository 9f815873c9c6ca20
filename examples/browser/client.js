/** A `Translator` in a worker, so that the page stays responsive while the model runs. */

export class WorkerTranslator {
  /**
   * @param {string} url Where the .tflite file is, as seen from the folder of `worker.js`.
   * @param {(share: number) => void} report Called with the share of the file that has arrived.
   */
  static async load(url, report = () => {}) {
    const translator = new WorkerTranslator(report);
    try {
      translator.metadata = await translator.ask({ command: "load", url });
      return translator;
    } catch (error) {
      translator.close();
      throw error;
    }
  }

  constructor(report) {
    this.worker = new Worker(new URL("worker.js", import.meta.url));
    this.worker.onmessage = ({ data }) => {
      if ("share" in data) report(data.share);
      else this.answer(data);
    };
    this.worker.onerror = ({ message }) => {
      this.end(new Error(`The page's worker failed: ${message ?? "worker.js is missing"}.`));
    };
  }

  /**
   * The same as `translate` of a `Translator`, and how many `milliseconds` it took. Only the newest
   * sentence counts: earlier calls that are not done reject with an `AbortError`. One that waits is
   * never run. One that runs is run to its end, as all of its tokens are one call of the model, and
   * its result is dropped.
   */
  translate(sentence) {
    return this.ask({ command: "translate", sentence });
  }

  /** Ends the worker and frees its memory at once; calls that are not done reject. */
  close() {
    this.end(new DOMException("The translator was closed.", "AbortError"));
  }

  ask(message) {
    if (this.ended) return Promise.reject(this.ended);
    this.reject(new DOMException("A newer sentence replaced this one.", "AbortError"));
    return new Promise((resolve, reject) => {
      this.waiting = { message, resolve, reject };
      this.sendNext();
    });
  }

  /** Sends the request that waits, unless the worker is busy: it could not take a message back. */
  sendNext() {
    if (this.running || !this.waiting) return;
    this.running = this.waiting;
    this.waiting = undefined;
    this.worker.postMessage(this.running.message);
  }

  answer({ result, error }) {
    const { resolve, reject } = this.running; // neither does anything after a rejection
    if (error === undefined) resolve(result);
    else reject(new Error(error));
    this.running = undefined;
    this.sendNext();
  }

  reject(reason) {
    for (const request of [this.running, this.waiting]) request?.reject(reason);
  }

  end(reason) {
    this.worker.terminate();
    this.ended ??= reason;
    this.reject(this.ended);
  }
}
