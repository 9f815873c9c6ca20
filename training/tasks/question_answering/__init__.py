"""Question answering: files in the format of SQuAD as data, and training."""
