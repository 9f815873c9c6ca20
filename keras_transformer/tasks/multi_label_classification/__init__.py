"""Classification of texts with several labels: the task and its pipeline."""
