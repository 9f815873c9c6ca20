"""Token classification: CoNLL files as data, and training."""
