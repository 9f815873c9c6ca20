"""Models that answer in one pass: codecs, results and pipelines."""
