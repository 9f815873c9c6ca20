"""Scores of pairs of texts, such as a query and a passage: the task and its pipeline."""
