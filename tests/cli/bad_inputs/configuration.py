"""Wrong configurations: files, sections, keys, types, ranges, and contradicting settings."""

import json

from . import fails, folder, spoiled, usage

TRAIN = "train CONFIG.toml --output NEW"


def setting(override, match):
    """A configuration with one wrong setting."""
    return fails(f"{TRAIN} --set {json.dumps(override)}", match)


FILES = [
    fails("train nowhere.toml --output NEW", "nowhere.toml: no such configuration file"),
    fails("train dmo --output NEW", "dmo: no such configuration file.*did you mean demo"),
    fails("train multi30 --output NEW", "multi30.*did you mean multi30k"),
    fails(
        "train FOLDER --output NEW", "FOLDER: is a folder; name a configuration", folder("FOLDER")
    ),
    fails("train x.toml --output NEW", r"x\.toml.*\[data\]", spoiled("x.toml", b"")),
    fails("train x.toml --output NEW", "line 1.*not valid TOML", spoiled("x.toml", b"[data\n")),
    fails("train x.toml --output NEW", "line 2.*not valid TOML", spoiled("x.toml", b"\na b\n")),
    fails("train x.toml --output NEW", "not UTF-8", spoiled("x.toml", b"# \xff\n")),
    fails("train x.toml --output NEW", "not valid TOML", spoiled("x.toml", b"a = 1\na = 2\n")),
    fails(
        "train x.toml --output NEW",
        r"\[modell\] is not a section",
        spoiled("x.toml", b"[modell]\n"),
    ),
    fails(
        "train x.toml --output NEW", "model must be a section", spoiled("x.toml", b"model = 1\n")
    ),
]

SET = [
    setting("training", "must have the form section.key=value"),
    setting("training=5", "must have the form section.key=value"),
    setting("training.updates", "must have the form section.key=value"),
    setting(".updates=5", "must have the form section.key=value"),
    setting("trainign.updates=5", r"\[trainign\] is not a section; did you mean training\?"),
    setting("training.update=5", "training.update is not a setting; did you mean updates"),
    setting(
        "model.d_modell=8",
        "d_modell is not a setting of a model for translation; did you mean d_model",
    ),
    setting("nonsense.x=1", r"\[nonsense\] is not a section.*Valid sections"),
]

VALUES = [
    setting("training.updates=many", "training.updates must be a valid integer.*'many'"),
    setting("training.updates=2.5", "training.updates must be a valid integer.*2.5"),
    setting("training.updates=0", "training.updates must be greater than 0"),
    setting("training.updates=-1", "training.updates must be greater than 0.*-1"),
    setting("training.updates=true", "training.updates must be a valid integer.*True"),
    setting("training.seed=-1", "training.seed must be greater than or equal to 0"),
    setting("training.accumulate=0", "training.accumulate must be greater than 0"),
    setting("training.label_smoothing=1", "training.label_smoothing must be less than 1"),
    setting("training.r_drop=-1", "training.r_drop must be greater than or equal to 0"),
    setting("training.r_drop=nan", "training.r_drop must be a finite number"),
    setting("training.ctc_weight=1", "training.ctc_weight must be less than 1"),
    setting("training.simcut=-1", "training.simcut must be greater than or equal to 0"),
    setting("training.token_cutoff=1", "training.token_cutoff must be less than 1"),
    setting("training.precision=float8", "training.precision must be.*mixed_bfloat16.*'float8'"),
    setting("training.best_by=chrf", "training.best_by must be.*'chrf'"),
    setting("training.final_model=first", "training.final_model must be.*'first'"),
    setting("training.jit_compile=1", "training.jit_compile must be a valid boolean"),
    setting("training.keep_checkpoints=0", "training.keep_checkpoints must be greater than 0"),
    setting("model.preset=huge", "model.preset must be one of.*base.*'huge'"),
    setting("model.dropout=2", "dropout.*2"),
    setting("model.dropout=-0.1", "dropout.*-0.1"),
    setting("model.d_model=0", "d_model.*0"),
    setting("model.num_heads=3", "divisible by.*num_heads=3"),
    setting("model.num_layers=0", "num_layers.*0"),
    setting("model.norm=middle", "norm.*middle"),
    setting("model.position=spiral", "position.*spiral"),
    setting("model.activation=step", "`activation` must be a Keras activation.*'step'"),
    setting("model.tie=loose", "tie.*loose"),
    setting("model.max_length=0", "max_length.*0"),
    setting('model.normalization={ kind = "layer", epsilon = 0 }', "`epsilon` must be above 0"),
    setting("vocabulary.size=3", "vocabulary.size must be greater than or equal to 8"),
    setting("vocabulary.model_type=char", "vocabulary.model_type must be 'bpe' or 'unigram'"),
    setting("vocabulary.character_coverage=0", "character_coverage must be greater than 0"),
    setting("optimizer.beta_1=1", "optimizer.beta_1 must be less than 1"),
    setting("optimizer.clip_norm=0", "optimizer.clip_norm must be greater than 0"),
    setting("optimizer.ema_momentum=1", "optimizer.ema_momentum must be less than 1"),
    setting("schedule.kind=stairs", "schedule.kind must be.*'stairs'"),
    setting("schedule.warmup_steps=0", "schedule.warmup_steps must be greater than 0"),
    setting("schedule.peak=0", "schedule.peak must be greater than 0"),
    setting("data.source=csv", "data.source must be one of cldr, text, tfds, .*'csv'"),
    setting("data.truncate_source=1", "data.truncate_source must be a valid boolean"),
    setting("data.packed=1", "data.packed must be a valid boolean"),
    setting("model.vectors=3", "model.vectors must be a valid string"),
    setting("model.freeze_vectors=1", "model.freeze_vectors must be a valid boolean"),
    setting("data.batch_tokens=0", "data.batch_tokens must be greater than 0"),
    setting("data.max_length=1", "data.max_length must be greater than or equal to 2"),
    setting("data.train_source=3", "data.train_source must be the name of a file, or a list"),
]

TOGETHER = [
    setting("data.max_length=15", "`data.max_length` must not exceed `model.max_length`"),
    setting("data.batch_tokens=5", "`batch_tokens` must be at least `max_length`"),
    setting("data.test_source=x", "`test_source` and `test_target` must be given together"),
    setting("data.train_source=${NOWHERE_AT_ALL}/x", "NOWHERE_AT_ALL, which is not set"),
    setting("data.packed=true", "`data.packed` has no effect on translation"),
    setting("model.freeze_vectors=true", "`model.freeze_vectors` has no effect without `model.v"),
    fails(
        f"{TRAIN} --set model.vectors=a.txt --set model.freeze_vectors=true",
        '`model.freeze_vectors` needs `model.tie = "none"`',
        spoiled("a.txt", b"a 1\n"),
    ),
    fails(
        "train x.toml --output NEW",
        "`source_language` and `target_language` must be given, or `features`",
        spoiled("x.toml", b'[data]\nsource = "tfds"\nname = "cnn_dailymail"\n'),
    ),
    fails(
        "train x.toml --output NEW",
        "`features` must name two different features",
        spoiled("x.toml", b'[data]\nsource = "tfds"\nname = "x"\nfeatures = ["a", "a"]\n'),
    ),
    fails(
        "train x.toml --output NEW",
        "`features` replaces `source_language` and `target_language`",
        spoiled(
            "x.toml",
            b'[data]\nsource = "tfds"\nname = "x"\nfeatures = ["a", "b"]\nsource_language = "a"\n',
        ),
    ),
    setting("training.patience=2", "`patience` needs `best_by`"),
    setting("training.final_model=best", "needs `best_by`"),
    fails(
        f"{TRAIN} --set training.best_by=bleu --set training.validate_sentences=0",
        '`training.best_by = "bleu"` needs `training.validate_sentences`',
    ),
    fails(
        "train x.toml --output NEW",
        "data.name is missing",
        spoiled("x.toml", b'[data]\nsource = "tfds"\n'),
    ),
    fails(
        "train x.toml --output NEW",
        r"\[data\] `train` is missing: set it to a file with all columns",
        spoiled("x.toml", b'[data]\nsource = "text"\n'),
    ),
    fails(f"{TRAIN} --set schedule.kind=linear", "needs `peak`"),
    fails(f"{TRAIN} --set schedule.scale=1 --set schedule.peak=1", "`scale` belongs to"),
    setting("schedule.warmup_steps=3", "`schedule.warmup_steps` must be"),
]

OTHERS = [
    usage("settings trainin", "SECTION must be one of.*did you mean training"),
    setting("optimizer.kind=adams", "optimizer.kind must be.*'adams'"),
    setting("optimizer.weight_decay=-1", "optimizer.weight_decay must be"),
    setting("model.start_from=nowhere", "nowhere is not a finished run"),
    setting("model.start_from=DATA", "DATA is not a finished run"),
    setting("data.train_weights=[1, 2]", "train_weights"),
    setting("data.tsv_columns=[1]", "tsv_columns"),
]

CASES = [*OTHERS, *FILES, *SET, *VALUES, *TOGETHER]
