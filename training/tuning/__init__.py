"""Fine-tuning: parts that stay fixed, learning rates of layers, and LoRA."""
