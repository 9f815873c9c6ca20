"""From corpora to batches of token ids."""
