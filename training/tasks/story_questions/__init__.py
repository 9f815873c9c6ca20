"""Questions about stories: files in the format of bAbI as data, and training."""
