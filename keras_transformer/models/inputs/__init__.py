"""Inputs of models: the layers before the first stack, one file for each kind."""
