"""Where a training runs, and in which precision."""
