/** A `Translator`, `Transcriber` or `Chat` in a worker: the page stays responsive while the model runs. */

/** Returns the whole address, because a worker would read it relative to its own script. */
const addressOf = (url) => new URL(url, globalThis.document?.baseURI ?? location.href).href;

class WorkerModel {
  /**
   * @param {string} url Address of the .tflite or .onnx file, relative to the page.
   * @param {(share: number) => void} report Called with the share of the file that has been loaded.
   */
  static async load(url, report = () => {}) {
    const model = new this(report);
    try {
      const request = { command: "load", url: addressOf(url), kind: this.kind };
      model.metadata = await model.ask(request);
      return model;
    } catch (error) {
      model.close();
      throw error;
    }
  }

  constructor(report) {
    this.worker = new Worker(new URL("worker.js", import.meta.url));
    this.worker.onmessage = ({ data }) => {
      if ("share" in data) report(data.share);
      else if ("part" in data) this.running.part(data.part);
      else this.answer(data);
    };
    this.worker.onerror = ({ message }) => {
      this.end(new Error(`The page's worker failed: ${message ?? "worker.js is missing"}.`));
    };
  }

  /** Ends the worker and frees its memory at once; unfinished calls reject. */
  close() {
    this.end(new DOMException(`The ${this.constructor.title} was closed.`, "AbortError"));
  }

  /**
   * Only the newest request is answered: earlier calls that have not finished reject with an
   * `AbortError`. A waiting request is never run. A running one goes on, because a call of the model
   * cannot be stopped; its result is dropped.
   */
  ask(message, part = () => {}) {
    if (this.ended) return Promise.reject(this.ended);
    const { input } = this.constructor;
    this.reject(new DOMException(`A newer ${input} replaced this one.`, "AbortError"));
    return new Promise((resolve, reject) => {
      this.waiting = { message, resolve, reject, part };
      this.sendNext();
    });
  }

  /** Sends the waiting request, unless the worker is busy, because a message cannot be recalled. */
  sendNext() {
    if (this.running || !this.waiting) return;
    this.running = this.waiting;
    this.waiting = undefined;
    this.worker.postMessage(this.running.message);
  }

  answer({ result, error }) {
    const { resolve, reject } = this.running; // no effect if the request was already rejected
    if (error === undefined) resolve(result);
    else reject(new Error(error));
    this.running = undefined;
    this.sendNext();
  }

  reject(reason) {
    for (const request of [this.running, this.waiting]) {
      if (!request) continue;
      request.part = () => {};
      request.reject(reason);
    }
  }

  end(reason) {
    this.worker.terminate();
    this.ended ??= reason;
    this.reject(this.ended);
  }
}

export class WorkerTranslator extends WorkerModel {
  static kind = "translate";
  static title = "translator";
  static input = "sentence";

  /** Returns the result of `Translator.translate`, and the time it took in `milliseconds`. */
  translate(sentence) {
    return this.ask({ command: "translate", sentence });
  }
}

export class WorkerTranscriber extends WorkerModel {
  static kind = "transcribe";
  static title = "transcriber";
  static input = "recording";

  /** Returns the result of `Transcriber.transcribe`, and the time it took in `milliseconds`. */
  transcribe(samples, choices) {
    return this.ask({ command: "transcribe", samples, choices });
  }
}

export class WorkerChat extends WorkerModel {
  static kind = "chat";
  static title = "chat";
  static input = "message";

  /**
   * Answers a message. The promise has the `text` of the answer; `complete`, which is false if it
   * was stopped or reached its maximum length; `dropped`, the number of the oldest messages that the
   * model does not see; and the milliseconds to the `first` part and in all. An answer that is being
   * generated is stopped; the conversation contains its parts until then.
   *
   * @param {string} content The message of the user.
   * @param {(part: string) => void} part Called with each part of the answer.
   * @param {boolean} begins Whether a new conversation begins.
   */
  send(content, part = () => {}, begins = false) {
    if (this.running) this.stop();
    return this.ask({ command: "send", content, begins }, part);
  }

  /** Ends the answer that is being generated after its next part. */
  stop() {
    this.worker.postMessage({ command: "stop" });
  }
}
