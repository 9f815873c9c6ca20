"""`examples/fine_tuning.py` with a small checkpoint that has random weights."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from bert_folders import PLAIN, write_folder

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "fine_tuning.py"


@pytest.mark.long
@pytest.mark.slow
def test_a_checkpoint_is_fine_tuned(tmp_path):
    """One without a classification head, as `BertModel` and sentence encoders are."""
    write_folder(tmp_path / "bert", **PLAIN)
    (tmp_path / "sst2").mkdir()
    for split, count in {"train": 40, "dev": 8, "test": 8}.items():
        lines = ["the film is very good\t1", "a bad , bad film .\t0"] * count
        (tmp_path / "sst2" / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    environment = {**os.environ, "MPLBACKEND": "Agg", "EPOCHS": "1", "CHECKPOINT": "bert",
                   "KERAS_TRANSFORMER_DATA": "."}  # fmt: skip
    environment.pop("DISPLAY", None)
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", EXAMPLE],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "train: 80 sentences" in done.stdout
    for title in ("Before fine-tuning, accuracy on dev", "Fine-tuned, accuracy"):
        assert re.search(rf"^{title}: [01]\.\d\d\d$", done.stdout, re.MULTILINE)
