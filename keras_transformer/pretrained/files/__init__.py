"""Reading of the files of checkpoints, none of which is trusted."""
