/** keras_transformer: the program of examples/browser, which translates one sentence at a time. */

import { Translator } from "/page/translate.js";

export async function load([model]) {
  const translator = await Translator.load(model);
  return async (texts) => {
    const answers = [];
    for (const text of texts) answers.push((await translator.translate(text)).text);
    return answers;
  };
}
