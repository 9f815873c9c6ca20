"""Images in, labels out: the task, what a trained model is used by, and files of images."""
