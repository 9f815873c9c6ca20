"""Texts that a language model generates token by token, from a run or an export."""
