"""Time series: CSV files as data, and training."""
