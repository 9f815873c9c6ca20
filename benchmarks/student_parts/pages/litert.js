/** keras_transformer: the program of examples/browser, which LiteRT.js runs. */

import { Translator } from "/page/translate.js";

export async function load([model]) {
  const translator = await Translator.load(model);
  return async (texts) => (await translator.translateAll(texts)).map(({ text }) => text);
}
