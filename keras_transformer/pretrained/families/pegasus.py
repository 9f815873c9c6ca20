"""PEGASUS in Hugging Face's format: summaries of texts, with SentencePiece Unigram."""

from keras_transformer.positions import Position, Sinusoidal
from keras_transformer.pretrained.added_tokens import with_added_tokens
from keras_transformer.pretrained.encoder_decoder import EncoderDecoderFamily
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.piece_vocabulary import check_ids_agree, read_pieces
from keras_transformer.pretrained.pieces import check_ids, sentencepiece_tokenizer
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.text.tokenizers import Tokenizers

SPM, OPTIONS = "spiece.model", "tokenizer_config.json"
OFFSET = 103  # ids of tokens of the pretraining, in front of the pieces
FIRST = ("<pad>", "</s>", "<mask_1>", "<mask_2>")


class Pegasus(EncoderDecoderFamily):
    """A folder with `config.json`, and `spiece.model` or `tokenizer.json`.

    Also read: `tokenizer_config.json`, which may name another `offset` of the ids.
    """

    name, model_type, task = "pegasus", "pegasus", "summarization"
    listing = Listing(
        {"bart-and-pegasus": ("PEGASUS",)},
        "pretrained_translation.md",
        "`spiece.model` or `tokenizer.json`",
        exports=("ctranslate2",),
    )
    reader = "PegasusForConditionalGeneration"
    learned = False
    # Sinusoids, which are computed.
    ignored = (r"model\.(encoder|decoder)\.embed_positions\.weight",)

    def position(self) -> Position:  # noqa: D102
        return Sinusoidal("halves")

    def tokenizers(self, config) -> Tokenizers:  # noqa: D102
        vocabulary = read_pieces(self.folder, SPM)
        vocabulary.check_end()
        ids, pieces = vocabulary.ids, vocabulary.pieces
        if ids is None:
            ids = self._numbered(pieces, config.tokens.vocab_size)
            check_ids_agree(vocabulary, ids)
        ids = with_added_tokens(ids, self.folder, vocabulary.content, vocabulary.path)
        check_ids(ids, config.tokens.vocab_size, vocabulary.path)
        no_text = {*FIRST} | ({*ids} - {*pieces})
        return Tokenizers.of(
            sentencepiece_tokenizer(
                vocabulary, ids, config, config.tokens.vocab_size, no_text=no_text
            )
        )

    def _numbered(self, pieces, size):
        """Returns the ids of the pieces of a SentencePiece model, and of those in front."""
        options = CheckpointSettings(self.folder.json(OPTIONS) or {}, self.folder.path / OPTIONS)
        offset = options.count("offset", OFFSET, least=len(FIRST))
        if len(pieces) + offset > size:
            rule = f"at least {len(pieces) + offset}, the pieces of {SPM} and the offset {offset}"
            raise self.settings.wrong("vocab_size", rule)
        front = [*FIRST, *(f"<unk_{number}>" for number in range(2, offset - len(FIRST) + 2))]
        ids = {piece: number for number, piece in enumerate(front)}
        return ids | {p: n + offset for n, p in enumerate(pieces) if p not in ids}
