"""Hugging Face's folders of Marian models, such as OPUS-MT's."""
