"""Saving of models by the programs of this folder that run `transformers`."""

import os

# `pytorch`: as older repositories have it. Every tensor of the model is then in the file, also
# tied ones, which `save_pretrained` leaves out.
FORMAT = os.environ.get("KERAS_TRANSFORMER_WEIGHTS", "safetensors")


def save(model, folder):
    """Writes the settings and the weights of a model."""
    model.save_pretrained(folder)
    if FORMAT == "pytorch":
        import torch

        left_out = getattr(model, "_keys_to_ignore_on_save", None) or ()
        tensors = {name: x for name, x in model.state_dict().items() if name not in left_out}
        torch.save(tensors, folder / "pytorch_model.bin")
        for path in folder.glob("model*.safetensors*"):
            path.unlink()
