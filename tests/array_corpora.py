"""Small corpora of images and of a time series, with configurations that train in a second."""

import datetime

import keras
import numpy as np

MODEL = """
[model]
num_layers = 1
d_model = 8
dropout = 0.2
"""
TRAINING = """
[schedule]
warmup_steps = 1
peak = 0.02

[training]
updates = 6
validate_every = 2
checkpoint_every = 1
keep_checkpoints = 3
log_every = 2
"""
BLOCK = 'd_ff = 12\nnum_heads = 2\nposition = "learned"\n'
CONFIGS = {
    "image_classification": MODEL
    + BLOCK
    + """
patch_size = 2

[data]
source = "images"
train = "train"
validation = "validation"
channels = 1
shift = 1
batch_size = 5
"""
    + TRAINING
    + 'best_by = "accuracy"\nfinal_model = "best"\n',
    "image_embedding": MODEL
    + BLOCK
    + """
patch_size = 2
dimensions = 4

[data]
source = "images"
train = "train"
validation = "validation"
channels = 1
shift = 1
batch_size = 5
"""
    + TRAINING
    + 'best_by = "recall_at_1"\nfinal_model = "best"\n',
    "time_series": MODEL
    + BLOCK
    + """
[data]
source = "series"
file = "river.csv"
inputs = ["rain", "warmth"]
target = "flow"
train = [2001-02-01, 2001-03-31]
validation = [2001-04-01, 2001-04-20]
test = [2001-04-21, 2001-05-09]
window = 9
scored = 4
stride = 3
batch_size = 5
"""
    + TRAINING,
}
KINDS = list(CONFIGS)
LABELS = ("2", "3", "10")


def write_images(folder, count, seed):
    """Writes grey images of 4 x 6 pixels; the label is the index of the brightest row."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        place = number % 3
        image = rng.integers(0, 128, (4, 6, 1))
        image[place] += 127
        path = folder / LABELS[place] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        keras.utils.save_img(path, image, scale=False)


def write_series(path, days=100):
    rng, flow = np.random.default_rng(3), 1.0
    lines = ["date,rain,warmth,flow"]
    for day in range(days):
        rain, warmth = rng.gamma(1.0), rng.normal()
        flow = 0.7 * flow + 0.3 * rain
        date = datetime.date(2001, 1, 30) + datetime.timedelta(day)
        lines.append(f"{date},{rain:.3f},{warmth:.3f},{flow if day % 11 else ''}")
    path.write_text("\n".join(lines) + "\n")


def write_corpus(folder):
    """Writes both corpora and their `KIND.toml` into a folder and returns the folder."""
    folder.mkdir(exist_ok=True)
    write_images(folder / "train", 13, seed=1)
    write_images(folder / "validation", 7, seed=2)
    write_series(folder / "river.csv")
    for kind, text in CONFIGS.items():
        (folder / f"{kind}.toml").write_text(f'[task]\nkind = "{kind}"\n{text}')
    return folder
