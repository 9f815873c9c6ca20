"""Speech recognition: the task, its pipeline, and the features of recordings."""
