"""Token classification: a label for each word of a text, and the spans that labels encode."""
