"""The files for TensorFlow Serving and Kubernetes on its page are valid and consistent."""

import concurrent.futures
import dataclasses
import pathlib
import re

import pytest
import yaml
from documents import PAGES, SERVER_OPTIONS, blocks, read, run, shell

from keras_transformer.export.saved_model import templates
from keras_transformer.export.saved_model.guide import batching_parameters, model_name

grpc = pytest.importorskip("grpc")
pytest.importorskip("tensorflow_serving.apis")

import serving_texts  # noqa: E402
from tensorflow_serving.apis import get_model_status_pb2, model_service_pb2_grpc  # noqa: E402

PAGE = "docs/serving_operations.md"
NAME = model_name(pathlib.Path("serving/translator"))  # the model name in every command of the page
PORTS = {"grpc": 8500, "rest": 8501}
# The first word of a text identifies its file.
FIRST = {
    "model_config_list": "models.config",
    "prometheus_config": "monitoring.config",
    "max_batch_size": "batching_parameters.txt",
}


@pytest.fixture(scope="module")
def texts():
    """The messages on the page, by file name."""
    found = {FIRST[block.code.split()[0]]: block.code for block in blocks(PAGE, "proto")}
    return {name: serving_texts.read(name, text) for name, text in found.items()}


@pytest.fixture(scope="module")
def manifest():
    """The objects of the manifest, by kind."""
    (block,) = blocks(PAGE, "yaml")
    objects = [*yaml.safe_load_all(block.code)]
    kinds = {item["kind"]: item for item in objects}
    assert len(kinds) == len(objects)
    return kinds


@pytest.fixture(scope="module")
def pod(manifest):
    return manifest["Deployment"]["spec"]["template"]


@pytest.fixture(scope="module")
def server(pod):
    (container,) = pod["spec"]["containers"]
    return container


def test_the_page_has_exactly_the_files_of_the_server(texts):
    assert set(texts) == set(serving_texts.FILES)
    assert len(blocks(PAGE, "proto")) == len(texts)
    # These pages have tests of their own.
    tested = (PAGE, "docs/other_servers.md", "docs/serve_operations.md")
    others = [page for page in PAGES if page not in tested]
    assert not [page for page in others if blocks(page, "proto")]
    manifests = [block.code for page in others for block in blocks(page, "yaml")]
    assert not [code for code in manifests if "apiVersion" in code]


def test_the_labels_belong_to_served_versions(texts):
    (model,) = texts["models.config"].model_config_list.config
    assert (model.name, model.model_platform) == (NAME, "tensorflow")
    assert model.base_path == f"/models/{NAME}"
    versions = [*model.model_version_policy.specific.versions]
    assert versions == [1, 2] and sorted(model.version_labels.values()) == versions
    named = set(re.findall(r"/labels/([a-z]+):predict", read(PAGE)))
    assert named and named < set(model.version_labels) == {"stable", "canary"}


def test_every_label_of_the_proxy_is_in_the_manifest(manifest, texts):
    """A request with another label is an error."""
    (proxy,) = blocks(PAGE, "nginx")
    split = re.search(r"split_clients .*?\$label \{(.*?)\}", proxy.code, re.DOTALL)[1]
    labels = set(re.findall(r"(\w+);", split))
    served = serving_texts.read("models.config", manifest["ConfigMap"]["data"]["models.config"])
    for message in (served, texts["models.config"]):
        (model,) = message.model_config_list.config
        assert set(model.version_labels) == labels == {"stable", "canary"}
        versions = model.model_version_policy.specific.versions
        assert set(model.version_labels.values()) == set(versions)
    assert f"server {manifest['Service']['metadata']['name']}:{PORTS['rest']};" in proxy.code


def test_the_batching_equals_the_exports_except_for_threads(texts):
    ours = texts["batching_parameters.txt"]
    written = serving_texts.read("batching_parameters.txt", batching_parameters())
    assert ours.num_batch_threads.value == 2
    names = ("max_batch_size", "batch_timeout_micros", "max_enqueued_batches")
    for name in (*names, "pad_variable_length_inputs"):
        assert getattr(ours, name) == getattr(written, name)
    assert not ours.allowed_batch_sizes and not written.allowed_batch_sizes


def test_options_of_the_server_exist(server):
    commands = [command.partition("tensorflow/serving")[2] for command in shell(PAGE)]
    named = re.findall(r"\s(--[a-z_]+)", " ".join(commands))
    named += [argument.partition("=")[0] for argument in server["args"]]
    assert len(named) > 10 and set(named) <= SERVER_OPTIONS


def test_page_and_exports_name_the_same_version_of_the_server(server):
    text = read(PAGE) + read("docs/serving.md") + templates.PAGE.template
    images = set(re.findall(r"(?<!github.com/)tensorflow/serving:?[\w.]*", text))
    assert images == {server["image"]} and re.fullmatch(r".*:\d+\.\d+\.\d+", server["image"])


def test_the_manifest_gives_the_server_its_files(manifest, texts, pod, server):
    files = manifest["ConfigMap"]["data"]
    assert set(files) == set(serving_texts.FILES)
    messages = {name: serving_texts.read(name, text) for name, text in files.items()}
    for name in ("monitoring.config", "batching_parameters.txt"):
        assert messages[name] == texts[name]
    (model,) = messages["models.config"].model_config_list.config
    assert (model.name, model.base_path) == (NAME, f"/models/{NAME}")
    mounts = {mount["mountPath"]: mount["name"] for mount in server["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    assert mounts == {"/models": "models", "/config": "config"} and set(volumes) == {
        *mounts.values()
    }
    assert volumes["config"]["configMap"]["name"] == manifest["ConfigMap"]["metadata"]["name"]
    named = {argument.partition("=/config/")[2] for argument in server["args"]} - {""}
    assert named == set(files)


def test_the_ports_of_the_manifest_are_those_of_the_server(manifest, pod, server):
    """The Service, the probes and Prometheus use them."""
    assert {port["name"]: port["containerPort"] for port in server["ports"]} == PORTS
    service = manifest["Service"]["spec"]
    assert {port["name"]: port["port"] for port in service["ports"]} == PORTS
    assert all(port["targetPort"] == port["name"] for port in service["ports"])
    for probe in ("startupProbe", "readinessProbe"):
        assert server[probe]["httpGet"] == {"path": f"/v1/models/{NAME}/metadata", "port": "rest"}
    assert server["livenessProbe"]["grpc"] == {"port": PORTS["grpc"]}
    assert "--enable_grpc_healthcheck_service=true" in server["args"]
    prometheus = serving_texts.read(
        "monitoring.config", manifest["ConfigMap"]["data"]["monitoring.config"]
    ).prometheus_config
    assert prometheus.enable
    annotations = pod["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(PORTS["rest"])
    assert annotations["prometheus.io/path"] == prometheus.path


def test_the_objects_of_the_manifest_refer_to_each_other(manifest, pod):
    assert set(manifest) == {
        "ConfigMap", "Deployment", "Service", "PodDisruptionBudget", "HorizontalPodAutoscaler",
    }  # fmt: skip
    assert {item["metadata"]["name"] for item in manifest.values()} == {NAME}
    deployment, labels = manifest["Deployment"], pod["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels
    assert manifest["Service"]["spec"]["selector"] == labels
    budget = manifest["PodDisruptionBudget"]["spec"]
    assert budget["selector"]["matchLabels"] == labels
    assert budget["maxUnavailable"] < deployment["spec"]["replicas"]
    scaler = manifest["HorizontalPodAutoscaler"]["spec"]
    assert scaler["scaleTargetRef"] == {
        "apiVersion": deployment["apiVersion"], "kind": "Deployment", "name": NAME,
    }  # fmt: skip
    assert scaler["minReplicas"] == deployment["spec"]["replicas"] < scaler["maxReplicas"]


def test_a_pod_finishes_its_requests_before_it_ends(pod, server):
    """The pause before the end and the longest request fit into the grace period."""
    (wait,) = server["lifecycle"]["preStop"]["exec"]["command"][1:]
    seconds = int(wait) + argument(server, "rest_api_timeout_in_ms") / 1000
    assert seconds < pod["spec"]["terminationGracePeriodSeconds"]


def argument(server, name):
    """Returns the number that an option of the server has."""
    (value,) = [a.partition("=")[2] for a in server["args"] if a.startswith(f"--{name}=")]
    return int(value)


def test_the_attempts_to_load_a_version_end_before_the_pod_is_killed(server):
    """With a minute for each attempt; otherwise the log would not have the reason."""
    attempts = 1 + argument(server, "max_num_load_retries")
    pauses = (attempts - 1) * argument(server, "load_retry_interval_micros") / 1e6
    probe = server["startupProbe"]
    assert attempts * 60 + pauses < probe["periodSeconds"] * probe["failureThreshold"]


def test_addresses_on_the_page_name_the_model():
    text = read(PAGE) + read("docs/serving.md")
    assert set(re.findall(r"/v1/models/(\w+)", text)) == {NAME}
    assert set(re.findall(r"localhost:(\d+)", text)) == {str(port) for port in PORTS.values()}


class Statuses(model_service_pb2_grpc.ModelServiceServicer):
    def GetModelStatus(self, request, context):  # noqa: N802
        assert request.model_spec.name == NAME
        answer = get_model_status_pb2.GetModelStatusResponse()
        answer.model_version_status.add(version=1, state="AVAILABLE")
        status = answer.model_version_status.add(version=2, state="END")
        status.status.error_message = "no memory"
        return answer


def test_the_program_that_queries_the_status_prints_it(capsys):
    service = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(Statuses(), service)
    port = service.add_insecure_port("localhost:0")
    service.start()
    (block,) = (block for block in blocks(PAGE, "python") if block.needs == "health")
    code = block.code.replace(f"localhost:{PORTS['grpc']}", f"localhost:{port}")
    run([dataclasses.replace(block, code=code)])
    service.stop(None).wait()
    assert capsys.readouterr().out == "1 AVAILABLE \n2 END no memory\n"
