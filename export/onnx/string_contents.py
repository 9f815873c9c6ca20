"""Contents of an .onnx file whose model generates text, from strings to strings."""

from typing import Any

from keras_transformer.export.errors import ExportError
from keras_transformer.export.onnx.generated import OnnxGeneration
from keras_transformer.export.onnx.model import OnnxModel
from keras_transformer.export.onnx.packages import require_extensions
from keras_transformer.export.onnx.string_graph import OPERATORS, check_ratio, with_strings
from keras_transformer.export.onnx.string_proof import require_same_strings
from keras_transformer.export.onnx.strings_apart import UNKNOWN
from keras_transformer.export.onnx.strings_runtime import OnnxStringTranslator, StringModel
from keras_transformer.export.onnx.vocabularies import check_vocabulary
from keras_transformer.export.parity import compare, require_identical


class OnnxStringGeneration(OnnxGeneration):
    """The search of a model that generates text, with its tokenizers.

    The graph of token ids is checked as without the tokenizers. Then strings must have the same
    outputs as their token ids.

    Args:
        pipeline, samples, limits, progress, options, left_out: See `OnnxGeneration`.

    Raises:
        ExportError: If the model has no encoder, or the operators do not support its vocabularies.
        TypeError, ValueError: See `OnnxGeneration`; also raised if onnxruntime-extensions is
            missing.
    """

    def __init__(self, pipeline, samples, limits, progress, options, left_out):
        super().__init__(pipeline, samples, limits, progress, options, left_out)
        require_extensions()
        if not pipeline.blank:
            raise ExportError(
                f"`tokenizer` needs a model with an encoder. Received: one for {pipeline.task}. "
                "Export without the tokenizer."
            )
        check_ratio(pipeline.search if options.search is None else options.search)
        tokenizers = pipeline.tokenizers
        for tokenizer in dict.fromkeys(tokenizers):
            check_vocabulary(tokenizer)
        progress("comparing the tokenizers")
        require_same_strings(tokenizers, samples, pipeline.max_length)
        # Empty and long sentences and unknown characters are seldom among real sentences.
        sentence = next(filter(str.strip, samples))
        edges = ["", f"{sentence} " * pipeline.max_length, f"{sentence} {UNKNOWN}"]
        self._texts, self._by_ids = [*samples, *edges], []

    def check(self, draft, path) -> dict[str, Any]:
        """Checks the draft, which takes token ids; see `OnnxGeneration`."""
        report = super().check(draft, path)
        self._path = path
        self._by_ids = self.opened(OnnxModel(draft)).answer(self._texts)
        return report

    def finished(self, content) -> Any:  # noqa: D102
        return with_strings(content, self.pipeline, self._search)

    def metadata(self, content) -> dict[str, Any]:  # noqa: D102
        metadata = super().metadata(content)
        if not any(node.op_type in OPERATORS for node in content.graph.node):
            return metadata
        del metadata["source"]  # the rule for token ids
        return {**metadata, "custom_operators": OPERATORS}

    def open(self, draft) -> None:
        """Requires the same outputs by strings as by token ids, of a quantised model as well."""
        self.progress(f"{self.pipeline.participle} {len(self._texts)} strings with the file")
        by_strings = OnnxStringTranslator(StringModel(draft)).answer(self._texts)
        tokenizer = self.pipeline.target_tokenizer
        require_identical(compare(self._texts, self._by_ids, by_strings, tokenizer), self._path)
