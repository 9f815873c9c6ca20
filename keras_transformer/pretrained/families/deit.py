"""Data-efficient vision transformers (DeiT): ViT with a distillation token."""

from keras_transformer.pretrained.image_encoder import ImageEncoder
from keras_transformer.pretrained.listing import Listing


class DeiT(ImageEncoder):
    """A vision transformer with a class token and a distillation token.

    A model that was trained with a teacher has a classifier for each token, and its logits are the
    mean of theirs. The other one has a classifier for the class token only.

    Reference: Touvron et al. (2021), "Training data-efficient image transformers & distillation
    through attention", section 4.
    """

    name, model_type, base = "deit", "deit", "deit."
    listing = Listing(
        {"deit": ("DeiT",)},
        "pretrained_images.md",
    )
    bare = "DeiTModel"
    architectures = {
        "DeiTForImageClassification": ("classifier",),
        "DeiTForImageClassificationWithTeacher": ("cls_classifier", "distillation_classifier"),
        bare: (),
        "DeiTForMaskedImageModeling": (),
    }
    class_tokens = "cls_token", "distillation_token"
    steps = {"resample": 3, "size": 256, "do_center_crop": True, "crop_size": 224}
