"""Fine-tuning: parts that stay fixed."""
