"""Vision transformers (ViT) in Hugging Face's format: an encoder of patches, and a head."""

from keras_transformer.pretrained.image_encoder import ImageEncoder


class ViT(ImageEncoder):
    """A vision transformer with one class token."""

    name, model_type, base = "vit", "vit", "vit."
    bare = "ViTModel"
    architectures = {
        "ViTForImageClassification": ("classifier",),
        bare: (),
        "ViTForMaskedImageModeling": (),
    }
