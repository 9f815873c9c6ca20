"""Presets: one for every row of Table 3, two small ones, and the students of browsers."""

# Not in the paper: what the students that browsers translate with have in common, in the arithmetic
# of Marian, which trains and runs them; `export marian` writes them for it. Junczys-Dowmunt et al.
# (2018), "Marian: Cost-effective High-Quality Neural Machine Translation in C++"; SSRU: Kim et al.
# (2019). Their vocabularies have 32,000 pieces.
_STUDENT = {
    "decoder": "ssru",
    "decoder_start": "zeros",
    "attention_bias": True,
    "output_bias": True,
    "sinusoid_layout": "halves",
    "sinusoid_endpoint": True,
    "num_layers": 6,
    "num_heads": 8,
    "d_ff": 1536,
}

# Table 3: what each row changes of the base model. Rows D with label smoothing 0.0 and 0.2 are the
# base model; their difference is `label_smoothing` in training.
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
    # Not in the paper: for some ten thousand pairs. The size and the dropout of Wu et al. (2021),
    # the best published model of Multi30K's text, with normalisation before each sublayer, which
    # learns in far fewer updates.
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
