"""Sound as samples: files, features, augmentation, and metrics of transcripts."""
