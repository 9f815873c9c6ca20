"""ViT of `transformers`: run by a Python that has it, torch and Pillow, not by ours.

`python hugging_face_vit.py FOLDER` reads `FOLDER/cases.json`, a dictionary from names to the
arguments of a configuration and of the preparation of images. For each case it writes
`FOLDER/NAME/` as `save_pretrained` does, and beside it `NAME.npz`: images and logits; and
`NAME.json`: what the pipeline returns for the images.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers
from PIL import Image


def run(folder, name, case):
    config = transformers.ViTConfig(**case["config"])
    torch.manual_seed(0)
    model = transformers.ViTForImageClassification(config).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for key, values in model.named_parameters():
            noise = torch.randn(values.shape, generator=generator)
            noise = noise * (0.3 if values.ndim < 2 else values[0].numel() ** -0.5)
            values.copy_(1 + noise if "layernorm" in key and key.endswith("weight") else noise)
    model.save_pretrained(folder / name)
    size = {"height": config.image_size, "width": config.image_size}
    processor = transformers.ViTImageProcessorPil(size=size, **case["images"])
    processor.save_pretrained(folder / name)
    shape = (4, config.image_size, config.image_size, config.num_channels)
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype("uint8")
    images = [Image.fromarray(image) for image in pixels]
    with torch.no_grad():
        logits = model(**processor(images, return_tensors="pt")).logits.numpy()
    np.savez(folder / f"{name}.npz", images=pixels, logits=logits)
    pipe = transformers.pipeline("image-classification", model=model, image_processor=processor)
    (folder / f"{name}.json").write_text(json.dumps([pipe(image, top_k=99) for image in images]))


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    place = pathlib.Path(sys.argv[1])
    for name, case in json.loads((place / "cases.json").read_text()).items():
        run(place, name, case)
