"""Documents: text, HTML, XML and Markdown around a model that translates sentences."""
