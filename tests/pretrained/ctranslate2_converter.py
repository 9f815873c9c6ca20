"""CTranslate2's own converter, run by a Python that also has torch and transformers.

`python ctranslate2_converter.py CHECKPOINT FOLDER` writes FOLDER in float32. The converter reads
the settings and weights of the checkpoint; names of tokens are made up, because ids are compared.
"""

import sys

import torch
import transformers
from ctranslate2.converters import transformers as converters


class Converter(converters.TransformersConverter):
    """The converter without a tokenizer, which the folders of the tests do not need."""

    def _load(self):
        config = transformers.AutoConfig.from_pretrained(self._model_name_or_path)
        # The loader asserts the only value that newer versions of transformers have left.
        config.position_embedding_type = "absolute"
        name = type(config).__name__
        loader = converters._MODEL_LOADERS[name]
        kind = getattr(transformers, loader.architecture_name)
        model = kind.from_pretrained(self._model_name_or_path, config=config, dtype=torch.float32)
        spec = loader.get_model_spec(model.eval())
        loader.set_vocabulary(spec, [f"token {number}" for number in range(config.vocab_size)])
        spec.config.layer_norm_epsilon = getattr(config, "layer_norm_eps", 1e-12)
        spec.config.unk_token = spec.config.bos_token = spec.config.eos_token = "token 0"
        return spec


if __name__ == "__main__":
    checkpoint, folder = sys.argv[1:]
    Converter(checkpoint).convert(folder)
