"""Image classification: folders of images as data, and training."""
