"""RoBERTa in Hugging Face's format: BERT's encoder with byte-level BPE, and a head."""

from keras_transformer.pretrained.byte_bpe import read_byte_bpe
from keras_transformer.pretrained.names import Layout, Weight, layers
from keras_transformer.pretrained.settings import ACTIVATIONS
from keras_transformer.pretrained.text_encoder import BERT_BLOCK, HEADS, SPANS, TEXTS, TextEncoder
from keras_transformer.text.tokenizers.byte_bpe import SPECIAL

# Settings that change what a model computes, with the values that models here have. A setting
# that is missing has the first of them.
EXPRESSIBLE = {
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "type_vocab_size": (1,),
}
FIRST = 2  # row of the first position: that after the row of padding, 1
HEAD = {"classifier.dense": "pooler", "classifier.out_proj": "output_layer"}


class Roberta(TextEncoder):
    """A folder with `config.json` and the vocabulary.

    The vocabulary is `tokenizer.json`, or `vocab.json` and `merges.txt`. A text is `<s> text </s>`,
    and a pair of texts `<s> one </s></s> other </s>`.
    """

    name, model_type = "roberta", "roberta"
    classes, base = "Roberta", "roberta."
    others = ("Model", "ForMaskedLM")
    pair_layout = "roberta"
    heads = {name: HEADS[name] for name in (TEXTS, SPANS)}
    ignored = (
        r"lm_head\..*",
        r"(roberta\.)?pooler\..*",
        r"(roberta\.)?embeddings\.(position_ids|token_type_ids)",
    )

    def config(self):  # noqa: D102
        settings = self.settings
        settings.check(EXPRESSIBLE | {"pad_token_id": (1,)})
        return self.make_config(
            pooler="tanh",
            num_layers=settings.count("num_hidden_layers"),
            d_model=settings.count("hidden_size"),
            num_heads=settings.count("num_attention_heads"),
            d_ff=settings.count("intermediate_size"),
            max_length=settings.count("max_position_embeddings", least=FIRST + 1) - FIRST,
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
        rows = config.max_length + FIRST
        yield f"{prefix}embeddings.position_embeddings.weight", (rows, width)

    def names(self, config):  # noqa: D102
        prefix = self.prefix
        yield Weight(f"{prefix}embeddings.word_embeddings.weight", "embedding.table")
        # The one token type is a part of every position.
        types = f"{prefix}embeddings.token_type_embeddings.weight"
        row = self.tensors.read(types, (1, config.d_model))
        yield Weight(
            f"{prefix}embeddings.position_embeddings.weight",
            "embedding.positions",
            Layout(first=FIRST),
            change=lambda values: values + row,
        )
        yield from layers({"embeddings.LayerNorm": "encoder.embedding_norm"}, prefix)
        for number in range(config.num_layers):
            theirs, ours = f"{prefix}encoder.layer.{number}.", f"encoder.blocks.{number}."
            yield from layers(BERT_BLOCK, theirs, ours)
        if self.classifies_texts:
            yield from layers(HEAD)
        else:
            yield from self.linear_head()

    def read_tokenizer(self):  # noqa: D102
        tokenizer = read_byte_bpe(self.folder, self.settings, SPECIAL, starts_with_bos=True)
        if tokenizer.pad_id != self.settings.get("pad_token_id", 1):
            rule = f"{tokenizer.pad_id}, the id of {SPECIAL['pad']} in the vocabulary"
            raise self.settings.wrong("pad_token_id", rule)
        return tokenizer
