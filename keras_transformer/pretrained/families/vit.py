"""Vision transformers (ViT) in Hugging Face's format: an encoder of patches, and a head."""

from keras_transformer.pretrained.image_encoder import ImageEncoder
from keras_transformer.pretrained.listing import Listing


class ViT(ImageEncoder):
    """A vision transformer with one class token."""

    name, model_type, base = "vit", "vit", "vit."
    listing = Listing(
        {"vit": ("ViT",)},
        "pretrained_images.md",
        tried=("DINOv2-small in ViT's layout",),
    )
    bare = "ViTModel"
    architectures = {
        "ViTForImageClassification": ("classifier",),
        bare: (),
        "ViTForMaskedImageModeling": (),
    }
