"""What a model is used for: text in, text out."""
