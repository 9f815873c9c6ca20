"""Fine-tuning: parts that stay fixed, and learning rates of layers."""
