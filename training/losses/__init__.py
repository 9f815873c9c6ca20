"""Losses and metrics; those over a vocabulary never keep all logits in memory."""
