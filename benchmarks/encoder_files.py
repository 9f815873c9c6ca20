"""Checkpoints with random weights in Hugging Face's format, and the files of the peers.

Run by the peers' Python, which has torch and transformers; our own files are written by
`keras-transformer convert` and `keras-transformer export`.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from encoder_task import LONGEST_MIXED, SPECIAL, Case, Encoder, words

CHECKPOINT = "checkpoint"  # the folder
EXAMPLES = (3, 14, 40, 126)  # tokens of the texts to check exports with
LENGTHS = (16, 128, 512)
MIXED = "litert-mixed"  # the file for texts of different lengths
TORCH_ONNX = "torch-onnx"  # the file of torch's exporter, with operators fused by ONNX Runtime
OPTIMUM = "optimum"  # the files of Optimum's command
MIXED_SIZES, MIXED_LENGTHS = (1, 4), (8, 16, 24, 32, 48, 64, 96, LONGEST_MIXED)
GROUP = 8  # number of texts in a sorted batch
# Random weights have no quality to lose; the report has the error.
LENIENT = ["--max-score-loss", "1000"]


def make(order):
    """Writes what the order names: the checkpoint, or the files of another peer."""
    encoder, folder = Encoder(**order["encoder"]), pathlib.Path(order["folder"])
    WRITERS[order["kind"]](encoder, folder)
    return Written()


class Written:
    """Result of `make`: nothing to run."""

    metadata = {}


def path_of(folder, kind, how):
    """Returns the path of a file or folder of a peer."""
    endings = {kind: ".onnx" for kind in ("onnx", TORCH_ONNX, OPTIMUM)}
    endings |= {kind: ".tflite" for kind in ("litert", MIXED)}
    return pathlib.Path(folder, f"{kind}_{how}{endings.get(kind, '')}")


def commands(folder, kinds, cases):
    """Returns the commands that write our files, as lists of arguments, and their paths.

    Args:
        folder: Folder with the checkpoint.
        kinds: Pairs of a kind of export, `saved-model`, `ctranslate2`, `onnx`, `litert` or `MIXED`,
            and a quantisation, `none` or `int8`.
        cases: The `Case`s of texts of one length.
    """
    run, given = folder / "run", ["--sentences", str(folder / "sentences.txt")]
    lines = [(["convert", "hf", str(folder / CHECKPOINT), str(run), "--license", "none"], run)]
    for kind, how in kinds:
        options, path = [*given], path_of(folder, kind, how)
        if kind in ("litert", MIXED):
            sizes, lengths = {*MIXED_SIZES}, {*MIXED_LENGTHS}
            if kind != MIXED:
                sizes, lengths = {case.batch for case in cases}, {case.length for case in cases}
            options += ["--batch-sizes", _listed(sizes), "--lengths", _listed(lengths)]
            options += ["--max-length", str(max(lengths))]
        if how != "none":
            options += ["--quantize", how, *LENIENT]
        command = "litert" if kind == MIXED else kind
        lines.append((["export", command, str(run), str(path), *options], path))
    return lines


def _listed(numbers):
    return ",".join(str(number) for number in sorted(numbers))


def write_checkpoint(encoder, folder):
    """Writes a folder of BERT, and sentences to check exports with.

    The kernels are twice as large as in an untrained BERT, so that outputs depend on all tokens.
    """
    import torch
    import transformers

    torch.manual_seed(encoder.seed)
    config = transformers.BertConfig(
        vocab_size=encoder.vocab_size, hidden_size=encoder.d_model,
        num_hidden_layers=encoder.num_layers, num_attention_heads=encoder.num_heads,
        intermediate_size=encoder.d_ff, max_position_embeddings=encoder.max_length, num_labels=2,
        position_embedding_type="absolute",  # as in files of BERT
    )  # fmt: skip
    kinds = {"labels": transformers.BertForSequenceClassification, "vector": transformers.BertModel}
    model = kinds[encoder.head](config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "classifier" in name:
                weight.normal_(0, 0.05)  # probabilities that are not nearly 0 or 1
            elif weight.ndim == 2 and "embeddings" not in name:
                weight.mul_(2)
            elif "LayerNorm" not in name and weight.ndim == 1:
                weight.normal_(0, 0.02)
    place = folder / CHECKPOINT
    model.save_pretrained(place)
    tokens = [*SPECIAL, *map(str, range(len(SPECIAL), encoder.vocab_size))]
    (place / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens), "utf-8")
    files = {"tokenizer_config.json": {
        "tokenizer_class": "BertTokenizer", "do_lower_case": True,
        "model_max_length": encoder.max_length,
    }}  # fmt: skip
    if encoder.head == "vector":
        files |= _sentence_encoder(encoder)
    for name, content in files.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(json.dumps(content, indent=1), "utf-8")
    rows = [Case(1, min(length, encoder.max_length)).groups(encoder)[0][0] for length in EXAMPLES]
    (folder / "sentences.txt").write_text("".join(f"{words(row)}\n" for row in rows), "utf-8")


def _sentence_encoder(encoder):
    """Returns the files with which sentence-transformers describes pooling and unit length."""
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {"idx": number, "name": str(number), "path": path,
         "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(kinds.items())
    ]  # fmt: skip
    pooling = {"word_embedding_dimension": encoder.d_model, "pooling_mode_mean_tokens": True}
    return {
        "modules.json": modules, "1_Pooling/config.json": pooling,
        "sentence_bert_config.json": {"max_seq_length": encoder.max_length},
    }  # fmt: skip


def model_with_head(encoder, checkpoint, attention):
    """Returns a module of torch from ids and mask `[B, S]` to the output `[B, C]`.

    Args:
        encoder: An `Encoder`.
        checkpoint: Folder of the checkpoint.
        attention: Implementation of attention in transformers, `"sdpa"` or `"eager"`.
    """
    import torch
    import transformers

    kinds = {"labels": transformers.BertForSequenceClassification, "vector": transformers.BertModel}
    model = kinds[encoder.head].from_pretrained(checkpoint, attn_implementation=attention)

    class WithHead(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids, mask):
            output = self.model(input_ids=ids, attention_mask=mask)
            if encoder.head == "labels":
                return torch.softmax(output.logits, dim=-1)
            real = mask[:, :, None].float()  # [B, S, 1]
            mean = (output.last_hidden_state * real).sum(1) / real.sum(1)  # [B, D]
            return torch.nn.functional.normalize(mean, dim=-1)

    return WithHead().eval()


def write_torch_onnx(encoder, folder):
    """Writes the graph that ONNX Runtime's optimizer fuses, and its dynamic int8 form."""
    import onnx
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.transformers import optimizer

    plain, fused = folder / "plain.onnx", path_of(folder, TORCH_ONNX, "none")
    model = model_with_head(encoder, folder / CHECKPOINT, "eager")
    names = ("input_ids", "attention_mask")
    ids = torch.full((2, 9), len(SPECIAL))
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    with torch.inference_mode():
        torch.onnx.export(
            model, (ids, mask), str(plain), input_names=list(names), output_names=["output"],
            dynamic_axes={**{name: {0: "B", 1: "S"} for name in names}, "output": {0: "B"}},
            dynamo=False, opset_version=17,
        )  # fmt: skip  # the optimizer knows the graphs of this exporter
    optimized = optimizer.optimize_model(
        str(plain), "bert", encoder.num_heads, encoder.d_model, opt_level=0
    )
    fusions = optimized.get_fused_operator_statistics()
    if fusions["Attention"] != encoder.num_layers:
        raise RuntimeError(f"ONNX Runtime's optimizer did not fuse the attention: {fusions}")
    optimized.save_model_to_file(str(fused))
    quantize_dynamic(
        str(fused), str(path_of(folder, TORCH_ONNX, "int8")), per_channel=True,
        weight_type=QuantType.QInt8, extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
    )  # fmt: skip
    plain.unlink()


def write_optimum(encoder, folder):
    """Writes the files of `optimum-cli`: fused, and in int8.

    Level O2 fuses operators. O3 also approximates GELU, so that outputs differ by more than
    `encoders.TOLERANCE`. The int8 form is that of the graph before the fusion: Optimum's
    quantisation of a fused graph ends with "Unable to find data type for weight_name".
    """
    program = pathlib.Path(sys.executable).with_name("optimum-cli")
    head = {
        "labels": ["--task", "text-classification", "--library", "transformers"],
        "vector": ["--task", "feature-extraction", "--library", "sentence_transformers"],
    }[encoder.head]
    export = [program, "export", "onnx", "--model", folder / CHECKPOINT, *head]
    with tempfile.TemporaryDirectory() as place:
        plain, fused, small = (pathlib.Path(place, name) for name in ("plain", "fused", "small"))
        quantize = [program, "onnxruntime", "quantize", "--avx512_vnni", "--per_channel"]
        for command in (
            [*export, "--optimize", "O2", fused],
            [*export, plain],
            [*quantize, "--onnx_model", plain, "-o", small],
        ):
            subprocess.run(command, check=True)
        shutil.move(fused / "model.onnx", path_of(folder, OPTIMUM, "none"))
        shutil.move(small / "model_quantized.onnx", path_of(folder, OPTIMUM, "int8"))


WRITERS = {
    CHECKPOINT: write_checkpoint,
    TORCH_ONNX: write_torch_onnx,
    OPTIMUM: write_optimum,
}
