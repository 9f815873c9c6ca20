"""The files of checkpoints, none of which is trusted."""
