"""Losses and metrics that never hold whole logits."""
