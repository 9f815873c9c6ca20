"""What tasks of images have in common: files, their preparation, codecs and pipelines."""
