"""`keras-transformer serve`: a model behind HTTP."""

import contextlib
import os
import sys
import traceback
import types
from typing import Any

import click

from keras_transformer.cli.command import EXISTING_FILE, FOLDER, Command, warn
from keras_transformer.cli.export_options import options_of, values_of
from keras_transformer.cli.help import add_options, option
from keras_transformer.installation import install_hint
from keras_transformer.native_code import ends_at_once
from keras_transformer.options import OptionError
from keras_transformer.serving.options import ACCESS, ServerOptions

KEY = "KERAS_TRANSFORMER_API_KEY"
VARIABLE = f"the environment variable {KEY}"
DECLARED: Any = types.SimpleNamespace(options=ServerOptions)
API_KEY = option(
    "--api-key-file",
    type=EXISTING_FILE,
    group=ACCESS,
    help=f"File with a key that requests must have, in the header `Authorization: Bearer KEY`.  "
    f"[default: {VARIABLE}, otherwise none]",
)


class ServeCommand(Command):
    """The command, which a signal ends at once until it serves: it may load a model for minutes."""

    def invoke(self, ctx) -> Any:  # noqa: D102
        with ends_at_once():
            click.echo(f"loading {ctx.params['model']} ...", err=True)
            return super().invoke(ctx)


EXAMPLE = """# A run, for this machine only:
keras-transformer serve runs/demo --port 8080
# An export, for other machines, with a key:
keras-transformer serve model.onnx --host 0.0.0.0 --api-key-file key.txt"""


def _serve(model, api_key_file, **options) -> None:
    """Serve MODEL over HTTP, until Ctrl-C or SIGTERM.

    MODEL is a run, a SavedModel, a .tflite file, an .onnx file or a folder for CTranslate2.
    Requests of several clients are answered in batches. The server supports the protocols of
    LibreTranslate, OpenAI and KServe, as far as they include the task of MODEL.

    After the first signal, the server answers the requests that it has accepted, and ends. A second
    signal, or a signal before the model is loaded, ends the server at once.
    """
    try:
        from keras_transformer.serving.languages import with_languages_of_data
        from keras_transformer.serving.server import listening_socket, serve
        from keras_transformer.serving.service import Service
    except ModuleNotFoundError as error:
        raise ValueError(f"serve needs {error.name}: {install_hint('serve')}") from error
    from keras_transformer.opening.forms import RunForm, form_of, open
    from keras_transformer.tasks.run import Run

    key, path = _key(api_key_file), model.resolve()
    # Fails before the model is loaded: its path, then the options, then the address.
    form = form_of(model)
    try:
        chosen = ServerOptions(**values_of(DECLARED, options))
        bound = listening_socket(chosen)
        answering = open(model)
        if form is RunForm:
            chosen = with_languages_of_data(chosen, answering, Run(path))
        service = Service(answering, chosen, chosen.name or _name(path), key, _report)
    except OptionError as error:
        raise click.UsageError(f"--{error.name.replace('_', '-')} {error.reason}") from error
    service.warm_up()
    _warn(service, VARIABLE if api_key_file is None else api_key_file)
    log = None if chosen.quiet else _write
    host, port = bound.getsockname()[:2]
    host = f"[{host}]" if ":" in host else host
    where = f"serving {service.name} ({service.task}) on http://{host}:{port}"
    serve(service, bound, log, lambda: click.echo(where, err=True))


serve = click.command("serve", cls=ServeCommand, example=EXAMPLE)(
    add_options(_serve, click.argument("model", type=FOLDER), options_of(DECLARED), API_KEY)
)


def _key(path):
    """Returns the key of the server, or `None`.

    Raises:
        ValueError: If the file, or the variable that is set, has no key that a header can have.
    """
    source = VARIABLE if path is None else path
    key = os.environ.get(KEY) if path is None else path.read_text("utf-8", "replace")
    if key is None:
        return None
    key = key.strip()
    if not key:
        remedy = "set it to the key, or unset it" if path is None else "--api-key-file has the key"
        raise ValueError(f"{source} is blank: {remedy}.")
    if not (key.isascii() and key.isprintable()):
        rule = "must be one line of printable ASCII characters, so that a header can have it"
        raise ValueError(f"the API key of {source} {rule}.")
    return key


def _name(path):
    """Returns the name of a model: that of its file, or of its folder unless that is a version."""
    if not path.is_dir():
        return path.stem
    is_version = path.name.isascii() and path.name.isdigit()
    return path.parent.name if is_version and path.parent.name else path.name


def _warn(service, source):
    """Writes what a client may not expect: languages without names, and whether a key is needed.

    Args:
        service: The `Service`.
        source: Where its key comes from, if it has one.
    """
    from keras_transformer.serving.languages import UNNAMED, ServedLanguages

    if (
        service.task == "translation"
        and not ServedLanguages.of(service.model, service.options).are_named
    ):
        warn(f"/translate refuses all requests: {UNNAMED}")
    host = service.options.host
    if host in ("127.0.0.1", "::1", "localhost"):
        return
    others = f"{host} is open to other machines, and requests need"
    if service.key is None:
        warn(f"{others} no API key")
    else:
        click.echo(f"{others} the API key of {source}", err=True)


def _write(line):
    """Writes a line of the access log; a closed pipe does not end the server."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{line}\n")


def _report(error):
    """Writes an unexpected exception with its origin."""
    _write("".join(traceback.format_exception(error)).rstrip())
