"""Hugging Face's `generate` with the original checkpoint."""

import pathlib

import torch
import transformers
from speech_files import CHECKPOINT
from speech_task import SAMPLE_RATE, Speech
from transformers.utils import logging

from speech_peers import Transcriber


def make(order):
    """Loads the folder, in float32, with or without compiling the decoder's steps."""
    torch.set_num_threads(order["cores"])
    torch.set_num_interop_threads(order["cores"])
    logging.set_verbosity_error()
    speech, folder = Speech(**order["speech"]), pathlib.Path(order["folder"], CHECKPOINT)
    extractor = transformers.WhisperFeatureExtractor.from_pretrained(folder)
    model = transformers.WhisperForConditionalGeneration.from_pretrained(
        folder, local_files_only=True
    ).eval()
    options = {"language": "en", "task": "transcribe", "max_new_tokens": speech.tokens}
    if order["compile"]:
        options["cache_implementation"] = "static"  # a cache that grows would be compiled anew
        model.forward = torch.compile(model.forward)
        model.model.encoder.forward = torch.compile(model.model.encoder.forward)
    samples = speech.samples()

    @torch.inference_mode()
    def transcribe():
        features = extractor(samples, sampling_rate=SAMPLE_RATE, return_tensors="pt")
        return model.generate(features.input_features, **options)

    def rows(tokens):
        return [[token for token in row if token < speech.text_tokens] for row in tokens.tolist()]

    return Transcriber(transcribe, rows)
