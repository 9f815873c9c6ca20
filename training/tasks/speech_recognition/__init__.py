"""Speech recognition: recordings as data, and training."""
