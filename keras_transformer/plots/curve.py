"""A picture of the learning curves."""

from keras_transformer.plots.figure import new_figure, save_png


def panels_of(task):
    """Returns the panels of a picture for a `Task`.

    Each is its title, how its axis is scaled, and its curves with their labels.
    """
    loss, *figures = [(name, figure) for name, figure in task.figures.items() if figure.drawn]
    of_loss = {"train/loss": "training", f"validation/{loss[0]}": "validation"}
    return (
        (f"{loss[1].title} per {task.unit.removesuffix('s')}", loss[1].scale, of_loss),
        *(
            (figure.title, figure.scale, {f"validation/{name}": "validation"})
            for name, figure in figures
        ),
        ("learning rate", "linear", {"train/learning_rate": "training"}),
    )


def draw_curve(history, path, task):
    """Draws training and validation over the updates; what was never measured has no panel.

    Args:
        history: A `History`.
        path: The PNG file to write; its folder is created if missing.
        task: The `Task`, which names what there is to draw.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
        OSError: If the file cannot be written.
    """
    known = panels_of(task)
    panels = [panel for panel in known if any(history.curve(name)[0] for name in panel[2])]
    figure = new_figure(7, 1 + 2 * len(panels))
    if panels:
        axes = figure.subplots(len(panels), 1, squeeze=False, sharex=True)[:, 0]
        for ax, panel in zip(axes, panels, strict=True):
            _draw(ax, history, *panel)
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
