"""Classification of texts: the task and its pipeline."""
