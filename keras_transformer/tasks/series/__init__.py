"""Time series in, a time series out: the task, and what a trained model is used by."""
