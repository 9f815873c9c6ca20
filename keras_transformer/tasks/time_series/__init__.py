"""Time series: the task, its pipeline, and CSV files."""
