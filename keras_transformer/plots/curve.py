"""A picture of the learning curves."""

from keras_transformer.plots.figure import new_figure, save_png

# One panel each: its title, how its axis is scaled, and its curves with their labels.
PANELS = (
    ("loss per token", "linear", {"train/loss": "training", "validation/loss": "validation"}),
    ("perplexity", "log", {"validation/perplexity": "validation"}),
    ("BLEU", "linear", {"validation/bleu": "validation"}),
    ("learning rate", "linear", {"train/learning_rate": "training"}),
)


def draw_curve(history, path):
    """Draws training and validation over the updates; what was never measured has no panel.

    Args:
        history: A `History`.
        path: The PNG file to write; its folder is created if missing.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
        OSError: If the file cannot be written.
    """
    panels = [panel for panel in PANELS if any(history.curve(name)[0] for name in panel[2])]
    figure = new_figure(7, 1 + 2 * len(panels))
    if panels:
        axes = figure.subplots(len(panels), 1, squeeze=False, sharex=True)[:, 0]
        for each, panel in zip(axes, panels, strict=True):
            _draw(each, history, *panel)
        axes[-1].set_xlabel("updates")
    save_png(figure, path)


def _draw(axes, history, title, scale, curves):
    for name, label in curves.items():
        updates, values = history.curve(name)
        if updates:
            marker = "o" if label == "validation" else None
            axes.plot(updates, values, label=label, marker=marker, markersize=3)
    axes.set_yscale(scale)
    if scale == "log":  # plain numbers instead of 2 x 10^1, between the powers of ten if few
        axes.yaxis.set_major_formatter("{x:g}")
        low, high = axes.get_ylim()
        axes.yaxis.set_minor_formatter("{x:g}" if high < 10 * low else "")
    axes.set_title(title, loc="left")
    axes.grid(alpha=0.3)
    if len(curves) > 1:
        axes.legend()
