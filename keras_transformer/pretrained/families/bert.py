"""BERT in Hugging Face's format: an encoder, with a head for labels if it has one."""

from keras_transformer.pretrained.names import Weight, layers
from keras_transformer.pretrained.settings import ACTIVATIONS
from keras_transformer.pretrained.text_encoder import BERT_BLOCK, TextEncoder
from keras_transformer.pretrained.wordpiece import read_wordpiece

# Settings that change what a model computes, with the values that models here have. A setting
# that is missing has the first of them.
EXPRESSIBLE = {
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "type_vocab_size": (2,),
}
EMBEDDINGS = {
    "word_embeddings": "embedding.table",
    "position_embeddings": "embedding.positions",
    "token_type_embeddings": "segments.table",
}


class Bert(TextEncoder):
    """A folder with `config.json` and the vocabulary: `tokenizer.json`, or `vocab.txt`.

    A text is `[CLS] text [SEP]`, and a pair of texts `[CLS] one [SEP] other [SEP]`.
    """

    name, model_type = "bert", "bert"
    classes, base = "Bert", "bert."
    others = ("Model", "ForMaskedLM", "ForPreTraining", "ForNextSentencePrediction")

    @property
    def ignored(self):
        """Tensors of other heads, buffers, and a pooler that no logit depends on."""
        fixed = (r"cls\..*", r"(bert\.)?embeddings\.(position_ids|token_type_ids)")
        return fixed if self.task == "classification" else (*fixed, r"(bert\.)?pooler\..*")

    def config(self):  # noqa: D102
        settings = self.settings
        settings.check(EXPRESSIBLE)
        return self.make_config(
            pooler="tanh",
            segments="after_eos",
            num_layers=settings.count("num_hidden_layers"),
            d_model=settings.count("hidden_size"),
            num_heads=settings.count("num_attention_heads"),
            d_ff=settings.count("intermediate_size"),
            max_length=settings.count("max_position_embeddings"),
            dropout=settings.number("hidden_dropout_prob", 0.1),
            attention_dropout=settings.number("attention_probs_dropout_prob", 0.1),
            activation=settings.choice("hidden_act", ACTIVATIONS, "gelu"),
            layer_norm_epsilon=settings.number("layer_norm_eps", 1e-12),
        )

    def sizes(self, config):  # noqa: D102
        prefix, width = self.prefix, config.d_model
        last = f"{prefix}encoder.layer.{config.num_layers - 1}.intermediate.dense.weight"
        yield last, (config.d_ff, width)
        yield f"{prefix}embeddings.word_embeddings.weight", (config.vocab_size, width)
        yield f"{prefix}embeddings.position_embeddings.weight", (config.max_length, width)

    def names(self, config):  # noqa: D102
        prefix = self.prefix
        for name, ours in EMBEDDINGS.items():
            yield Weight(f"{prefix}embeddings.{name}.weight", ours)
        yield from layers({"embeddings.LayerNorm": "encoder.embedding_norm"}, prefix)
        for number in range(config.num_layers):
            theirs, ours = f"{prefix}encoder.layer.{number}.", f"encoder.blocks.{number}."
            yield from layers(BERT_BLOCK, theirs, ours)
        # Without a trained head, the pooler may be missing: it is trained with a new head.
        required = self.classifies_texts or f"{prefix}pooler.dense.weight" in self.tensors
        if self.task == "classification" and required:
            yield from layers({"pooler.dense": "pooler"}, prefix)
        yield from self.linear_head()

    def read_tokenizer(self):  # noqa: D102
        return read_wordpiece(self.folder, self.settings)
