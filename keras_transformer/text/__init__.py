"""Text: files of lines, tokenizers, and metrics of translations and summaries."""
