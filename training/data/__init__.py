"""Sources of data, the stores that keep their encoded examples, and batches."""
