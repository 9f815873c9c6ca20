"""Presets: every row of Table 3, two small models, and SSRU students as in Firefox."""

from keras_transformer.positions import Sinusoidal

# Not in the paper: common options of the SSRU students that Firefox ships. They follow Marian's
# arithmetic, so that `export marian` can write them. Junczys-Dowmunt et al. (2018), "Marian:
# Cost-effective High-Quality Neural Machine Translation in C++"; SSRU: Kim et al. (2019). Their
# vocabularies have 32,000 tokens.
_STUDENT = {
    "decoder": "ssru",
    "decoder_start": "zeros",
    "attention_bias": True,
    "output_bias": True,
    "position": Sinusoidal("halves", endpoint=True),
    "num_layers": 6,
    "num_heads": 8,
    "d_ff": 1536,
}

# Differences of the rows of Table 3 from the base model. Rows D with label smoothing 0.0 and 0.2
# differ from it only in training, in `label_smoothing`.
PRESETS = {
    "base": {},
    "a_heads_1": {"num_heads": 1},
    "a_heads_4": {"num_heads": 4},
    "a_heads_16": {"num_heads": 16},
    "a_heads_32": {"num_heads": 32},
    "b_d_k_16": {"d_k": 16},
    "b_d_k_32": {"d_k": 32},
    "c_layers_2": {"num_layers": 2},
    "c_layers_4": {"num_layers": 4},
    "c_layers_8": {"num_layers": 8},
    "c_d_model_256": {"d_model": 256},
    "c_d_model_1024": {"d_model": 1024},
    "c_d_ff_1024": {"d_ff": 1024},
    "c_d_ff_4096": {"d_ff": 4096},
    "d_dropout_0.0": {"dropout": 0.0},
    "d_dropout_0.2": {"dropout": 0.2},
    "d_label_smoothing_0.0": {},
    "d_label_smoothing_0.2": {},
    "e_learned_positions": {"position": "learned"},
    "big": {"d_model": 1024, "d_ff": 4096, "num_heads": 16, "dropout": 0.3},
    # Not in the paper: trains in minutes on a laptop.
    "tiny": {"num_layers": 4, "d_model": 128, "d_ff": 256, "num_heads": 4, "max_length": 128},
    # Not in the paper: for tens of thousands of pairs. Size and dropout follow Wu et al. (2021),
    # the best published text-only model for Multi30K; pre-norm learns in far fewer updates.
    "small": {
        "num_layers": 4,
        "d_model": 128,
        "d_ff": 256,
        "num_heads": 4,
        "dropout": 0.3,
        "norm": "pre",
        "max_length": 256,
    },
    "student_tiny": {**_STUDENT, "num_decoder_layers": 2, "d_model": 256},
    "student_base_memory": {**_STUDENT, "num_decoder_layers": 4, "d_model": 384},
}
