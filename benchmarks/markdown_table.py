"""Tables in Markdown, ready for `docs/benchmarks.md`."""

TITLES = {
    "ours": "SavedModel", "ours-xla": "SavedModel, XLA", "ours-c": "SavedModel, C API",
    "ours-litert": "LiteRT, float32",
    "ours-litert-int8": "LiteRT, int8", "ours-onnx": "our `.onnx`, float32",
    "ours-onnx-int8": "our `.onnx`, int8", "onnxruntime": "ONNX Runtime, float32, fused",
    "onnxruntime-int8": "ONNX Runtime, int8, fused", "optimum": "Optimum, float32, O2",
    "optimum-int8": "Optimum, int8", "ctranslate2": "CTranslate2, float32",
    "ctranslate2-int8": "CTranslate2, int8", "transformers": "Transformers",
    "transformers-compiled": "Transformers, compiled",
    "transformers-bfloat16": "Transformers, bfloat16",
    "sentence-transformers": "sentence-transformers",
    "faster-whisper": "faster-whisper, float32", "faster-whisper-int8": "faster-whisper, int8",
    "whisper-cpp-float16": "whisper.cpp, float16", "whisper-cpp-int8": "whisper.cpp, Q8_0",
}  # fmt: skip
MIXED = "-mixed"  # ends the name of a peer that runs another file for some of the columns
# Precisions in names of peers that are compared by themselves; float16 counts as float32.
LITTLE = "bfloat16", "int8"


def table(rows, column):
    """Returns a table of median times in milliseconds, with a line for each peer.

    The shortest time of a column is bold, in each precision. The last columns are the size of the
    peer's files, its peak memory, and the seconds to the first answer of its process.

    Args:
        rows: Rows of a report, dictionaries with `peer`, `seconds`, `bytes`, `peak_bytes` and
            `first_seconds`.
        column: Function from a row to the title of its column.
    """
    peers, columns = {}, list(dict.fromkeys(map(column, rows)))
    for row in rows:
        peers.setdefault(row["peer"].removesuffix(MIXED), []).append(row)
    best = {}
    for row in rows:
        key = column(row), _precision(row["peer"])
        best[key] = min(best.get(key, float("inf")), row["seconds"]["median"])
    titles = ["", *columns, "MB of file", "MB of memory", "first answer, s"]
    lines = [titles, ["---"] * len(titles)]
    for peer, own in peers.items():
        cells = {column(row): row["seconds"]["median"] for row in own}
        texts = [_cell(cells.get(name), best.get((name, _precision(peer)))) for name in columns]
        sizes = _range(own, "bytes", 1e6), _range(own, "peak_bytes", 1e6, digits=0)
        lines.append([TITLES[peer], *texts, *sizes, _range(own, "first_seconds")])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _range(rows, key, scale=1.0, digits=1):
    """Returns the smallest and the largest value of rows in a text, or one if they are equal."""
    values = [row[key] / scale for row in rows]
    ends = (f"{value:,.{digits}f}" for value in (min(values), max(values)))
    return " to ".join(dict.fromkeys(ends))


def _precision(peer):
    return next((name for name in LITTLE if name in peer), "float32")


def _cell(seconds, best):
    if seconds is None:
        return ""
    digits = 2 if seconds < 0.01 else 1 if seconds < 0.1 else 0
    text = f"{1e3 * seconds:,.{digits}f}"
    return f"**{text}**" if seconds == best else text
