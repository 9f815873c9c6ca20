"""Inputs of models: the layers before the first stack, one kind per file."""
