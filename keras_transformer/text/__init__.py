"""Text: files of lines, token ids, and how good a translation is."""
