"""Vision models of `transformers`: run by a Python that has it, torch and Pillow, not by ours.

`python hugging_face_images.py FOLDER` reads `FOLDER/cases.json`, a dictionary from names to cases:
the class of the model, the arguments of its configuration and of its image processor, the beginning
of that processor's name if it is not the model's, and the sizes of images. For each case it writes
`FOLDER/NAME/` as `save_pretrained` does, and beside it `NAME.npz`: images, prepared pixels, hidden
states and logits; and `NAME.json`: what the pipeline returns for the images.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers
from PIL import Image
from saved_weights import save


def run(folder, name, case):
    family, head = case["model"]
    config = getattr(transformers, f"{family}Config")(**case["config"])
    torch.manual_seed(0)
    model = getattr(transformers, f"{family}{head}")(config).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for key, values in model.named_parameters():
            noise = torch.randn(values.shape, generator=generator)
            noise = noise * (0.3 if values.ndim < 2 else values[0].numel() ** -0.5)
            is_scale = "norm" in key and key.endswith("weight") or "layer_scale" in key
            values.copy_(1 + noise if is_scale else noise)
    save(model, folder / name)
    size = {"height": config.image_size, "width": config.image_size}
    options = {"size": size, "crop_size": size, **case["images"]}
    name_of_processor = f"{case.get('processor', family)}ImageProcessorPil"
    processor = getattr(transformers, name_of_processor)(**options)
    processor.save_pretrained(folder / name)
    generator = np.random.default_rng(0)
    shapes = [(*sides, config.num_channels) for sides in case["sizes"]]
    pixels = [generator.integers(0, 256, shape).astype("uint8") for shape in shapes]
    images = [Image.fromarray(image) for image in pixels]
    inputs = processor(images, return_tensors="pt")
    with torch.no_grad():
        outputs = model(**inputs, output_hidden_states=True)
        states = model.base_model(**inputs).last_hidden_state.numpy()
    arrays = {f"image_{number}": image for number, image in enumerate(pixels)}
    raw = processor(images, do_rescale=False, do_normalize=False, return_tensors="np")
    prepared = np.array(raw["pixel_values"]).transpose(0, 2, 3, 1)
    logits = outputs.logits.numpy() if hasattr(outputs, "logits") else np.zeros(0)
    np.savez(folder / f"{name}.npz", prepared=prepared, states=states, logits=logits, **arrays)
    answers = []
    if logits.size:
        kind = "image-classification"
        pipe = transformers.pipeline(kind, model=model, image_processor=processor)
        answers = [pipe(image, top_k=99) for image in images]
    (folder / f"{name}.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    place = pathlib.Path(sys.argv[1])
    for name, case in json.loads((place / "cases.json").read_text()).items():
        run(place, name, case)
