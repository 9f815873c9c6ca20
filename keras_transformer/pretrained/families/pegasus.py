"""PEGASUS in Hugging Face's format: summaries of texts, with SentencePiece Unigram."""

from typing import Any

from keras_transformer.pretrained.encoder_decoder import EncoderDecoderFamily
from keras_transformer.pretrained.pieces import sentencepiece_tokenizer
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.sentencepiece_model import pieces_of
from keras_transformer.text.tokenizers import Tokenizers

SPM, OPTIONS = "spiece.model", "tokenizer_config.json"
OFFSET = 103  # ids of tokens of the pretraining, in front of the pieces
FIRST = ("<pad>", "</s>", "<mask_1>", "<mask_2>")


class Pegasus(EncoderDecoderFamily):
    """A folder with `config.json` and `spiece.model`.

    Also read: `tokenizer_config.json`, which may name another `offset` of the ids.
    """

    name, model_type, task = "pegasus", "pegasus", "summarization"
    reader = "PegasusForConditionalGeneration"
    learned = False
    # Sinusoids, which are computed.
    ignored = (r"model\.(encoder|decoder)\.embed_positions\.weight",)

    def positions(self) -> dict[str, Any]:  # noqa: D102
        return {"sinusoid_layout": "halves"}

    def tokenizers(self, config) -> Tokenizers:  # noqa: D102
        path = self.folder.require(SPM)
        try:
            pieces = pieces_of(path.read_bytes())
        except ValueError as error:
            raise ValueError(f"{path}: {error}.") from error
        options = CheckpointSettings(self.folder.json(OPTIONS) or {}, self.folder.path / OPTIONS)
        offset = options.count("offset", OFFSET, least=len(FIRST))
        if len(pieces) + offset > config.vocab_size:
            rule = f"at least {len(pieces) + offset}, the pieces of {SPM} and the offset {offset}"
            raise self.settings.wrong("vocab_size", rule)
        front = [*FIRST, *(f"<unk_{number}>" for number in range(2, offset - len(FIRST) + 2))]
        ids = {piece: number for number, piece in enumerate(front)}
        ids |= {p: n + offset for n, p in enumerate(pieces) if p not in ids}
        tokenizer = sentencepiece_tokenizer(
            self.folder, SPM, ids, config, config.vocab_size, no_text=front
        )
        return Tokenizers.of(tokenizer)
