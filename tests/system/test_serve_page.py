"""The pages on `serve` have the answers, metrics, routes, options and times of the code."""

import json
import pathlib
import re
import shlex

import pytest
import yaml
from documents import blocks, read
from servers import Shouting, serving

pytest.importorskip("uvicorn")
pytest.importorskip("multipart")

from keras_transformer.cli.serve import KEY, serve  # noqa: E402
from keras_transformer.serving.app import Health  # noqa: E402
from keras_transformer.serving.metrics import Metrics  # noqa: E402
from keras_transformer.serving.options import ServerOptions  # noqa: E402
from keras_transformer.serving.server import KEEP_ALIVE, graceful_seconds  # noqa: E402
from keras_transformer.serving.service import STUCK  # noqa: E402
from keras_transformer.tasks.results import Translation  # noqa: E402

PAGE = "docs/serve_operations.md"
SAMPLES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}


def metrics():
    """Returns the type of each metric and its labels, by name."""
    collectors = [one for one in vars(Metrics()).values() if hasattr(one, "_labelnames")]
    return {
        f"{one._name}_total" if one._type == "counter" else one._name: (
            one._type,
            set(one._labelnames),
        )
        for one in collectors
    }


def test_the_table_has_every_metric():
    rows = re.findall(
        r"^\| `(keras_transformer_\w+)` \| (\w+) \| (.*?) \|", read(PAGE), re.MULTILINE
    )
    table = {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    assert len(table) == len(rows) and table == metrics()


def test_alerts_and_symptoms_name_samples_of_metrics():
    known = {
        name.removesuffix("_total") + end
        for name, (kind, _) in metrics().items()
        for end in SAMPLES[kind]
    }
    (alerts,) = [block.code for block in blocks(PAGE, "yaml") if block.code.startswith("groups")]
    rules = yaml.safe_load(alerts)["groups"][0]["rules"]
    named = set(re.findall(r"keras_transformer_\w+", " ".join(rule["expr"] for rule in rules)))
    assert len(named) > 3 and named <= known
    short = re.findall(r"`((?:waiting|model|request|batch|stream)\w*_\w+)`", read(PAGE))
    assert {f"keras_transformer_{name}" for name in short} <= known | set(metrics())


@pytest.fixture(scope="module")
def manifest():
    """The objects of the manifest, by kind."""
    (code,) = [block.code for block in blocks(PAGE, "yaml") if block.code.startswith("apiVersion")]
    return {item["kind"]: item for item in yaml.safe_load_all(code)}


@pytest.fixture(scope="module")
def pod(manifest):
    return manifest["Deployment"]["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def server(pod):
    (container,) = pod["containers"]
    return container


@pytest.fixture(scope="module")
def values(server):
    """The values of the options in the manifest."""
    values, rest, _ = serve.make_parser(serve.context_class(serve)).parse_args([*server["args"]])
    assert not rest
    return values


def test_the_manifest_starts_the_command(server, values):
    assert pathlib.PurePath(values["model"]).is_relative_to(server["volumeMounts"][0]["mountPath"])
    assert values["host"] == "0.0.0.0"
    assert server["ports"] == [{"name": "http", "containerPort": int(values["port"])}]
    assert KEY in [variable["name"] for variable in server["env"]]


def test_the_probes_need_no_key(server):
    routes = {path for _, path, _ in Health(None).routes()} - {"/metrics"}
    probes = ("startupProbe", "readinessProbe", "livenessProbe")
    paths = [server[probe]["httpGet"]["path"] for probe in probes]
    assert set(paths) <= routes and paths == ["/health/ready", "/health/ready", "/health/live"]
    assert {server[probe]["httpGet"]["port"] for probe in probes} == {"http"}


def test_a_pod_finishes_its_requests_before_it_ends(pod, server, values):
    (pause,) = server["lifecycle"]["preStop"]["exec"]["command"][1:]
    seconds = graceful_seconds(ServerOptions(timeout=float(values["timeout"])))
    assert int(pause) + seconds < pod["terminationGracePeriodSeconds"]


def test_the_objects_refer_to_each_other(manifest):
    labels = manifest["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert manifest["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert manifest["Service"]["spec"]["selector"] == labels
    assert manifest["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert [port["targetPort"] for port in manifest["Service"]["spec"]["ports"]] == ["http"]


def test_the_times_on_the_page_are_those_of_the_server():
    text, defaults = " ".join(read(PAGE).split()), ServerOptions()
    assert f"1 seconds ({graceful_seconds(defaults)} by default)" in text
    assert f"{KEEP_ALIVE} seconds without a request" in text
    assert STUCK == 10 and "ten times `--timeout`" in text


class Demo(Shouting):
    """A translator of one text, with the score on the page."""

    def answer_batch(self, inputs):
        (score,) = re.findall(r'"score":([-\d.e]+)', read("docs/serve.md"))
        texts = {"in 17 weeks": "in 17 Wochen"}
        return [
            Translation(texts.get(text, ""), float(score), False, complete=True) for text in inputs
        ]


def request_of(command):
    """Returns the path, the body and the headers of a request by curl."""
    curl, address, *options = shlex.split(command.replace("\\\n", " "))
    assert curl == "curl"
    values = {"-d": [], "-H": []}
    for option, value in zip(options[::2], options[1::2], strict=True):
        values[option].append(value)
    headers = dict(header.split(": ") for header in values["-H"])
    headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
    return address.removeprefix("http://127.0.0.1:8080"), "&".join(values["-d"]), headers


def test_the_requests_on_the_page_get_the_answers_below_them():
    requests = [block for block in blocks("docs/serve.md", "sh") if block.output is not None]
    assert len(requests) == 3 and all(block.needs == "server" for block in requests)
    with serving(Demo(), name="demo", source_language="en", target_language="de") as served:
        for block in requests:
            path, body, headers = request_of(block.code)
            assert served.ask("POST", path, body, **headers) == (200, json.loads(block.output))
