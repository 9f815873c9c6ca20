"""Questions about stories: a memory network or a Transformer chooses one of a few answers."""
