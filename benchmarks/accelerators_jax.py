"""Compiles programs of `accelerators.py` for a chip that this machine does not have.

Needs only JAX with libtpu, or with its CUDA plugin. The compilers come with these packages, and
`jax.experimental.topologies` describes the chips, so that no driver and no device is needed. Called
by `accelerators.py compile`: `python accelerators_jax.py CHIP FILE.hlo`, which prints a line of
JSON.
"""

import argparse
import json
import os
import pathlib
import re
import sys
import time

# Topologies of one host of each kind, by the number of chips.
TPUS = {
    "v4": {4: "v4:2x2x1"},
    "v5e": {1: "v5e:1x1", 4: "v5e:2x2"},
    "v5p": {4: "v5p:2x2x1"},
    "v6e": {1: "v6e:1x1", 4: "v6e:2x2"},
}
ONE_CHIP = {"chips_per_host_bounds": (1, 1, 1)}
GPUS = {"h100": "h100_sxm.txtpb"}  # a description of the card, which is XLA's own
ALL_REDUCE = re.compile(r" all-reduce(?:-start)?\(")
ALIAS = re.compile(r"\((\d+), \{[\d, ]*\}, (?:may|must)-alias\)")  # in the first line
# Without these, libtpu asks Google's metadata server and refuses a second process, and JAX looks
# for devices.
ENVIRONMENT = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_SKIP_MDS_QUERY": "1", "TPU_ACCELERATOR_TYPE": "v5litepod-4", "TPU_WORKER_ID": "0",
    "TPU_WORKER_HOSTNAMES": "localhost", "JAX_PLATFORMS": "cpu",
    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1", "TF_CPP_MIN_LOG_LEVEL": "2",
}  # fmt: skip


class ChipError(Exception):
    """Error if a package or a topology is missing, or a program does not fit; one line."""


def devices_of(chip, replicas):
    """Returns the devices of a topology, which need not exist.

    Raises:
        ChipError: If the chip's compiler is not installed, or has no such topology.
    """
    from jax.experimental import topologies

    if chip in GPUS:
        try:
            import jax_plugins.xla_cuda12  # noqa: F401
        except ImportError as error:
            raise ChipError(
                "JAX's CUDA plugin is missing: pip install --no-deps jax-cuda12-plugin "
                "jax-cuda12-pjrt, in the version of jax"
            ) from error
        config = pathlib.Path(__file__).with_name(GPUS[chip]).read_text("utf-8")
        return topologies.get_topology_desc(
            platform="cuda", topology_name="", topology=f"1x1x{replicas}", target_config=config
        ).devices
    name = TPUS[chip].get(replicas)
    if name is None:
        counts = " or ".join(map(str, TPUS[chip]))
        raise ChipError(f"{chip} is compiled for {counts} replicas, not for {replicas}")
    try:
        import libtpu  # noqa: F401
    except ImportError as error:
        raise ChipError('libtpu is missing: pip install "jax[tpu]"') from error
    options = ONE_CHIP if replicas == 1 else {}
    return topologies.get_topology_desc(platform="tpu", topology_name=name, **options).devices


def module_of(content, context):
    """Returns the StableHLO module of a serialized `HloModuleProto`.

    The converter leaves an `mhlo.copy`, an identity, before every output that is a variable, which
    XLA does not accept.
    """
    from jax._src.lib import _jax
    from jax._src.lib.mlir import ir

    with context:
        module = ir.Module.parse(_jax.mlir.hlo_to_stablehlo(content))
        for copy in [*_named("mhlo.copy", module.operation)]:
            copy.results[0].replace_all_uses_with(copy.operands[0])
            copy.erase()
    return module


def _named(name, operation):
    """Returns all operations of a name within another one."""
    found = []
    for block in (block for region in operation.regions for block in region.blocks):
        for inner in block.operations:
            if inner.operation.name == name:
                found.append(inner.operation)
            found += _named(name, inner.operation)
    return found


def compile_for(devices, content):
    """Compiles a program, one replica for each device; returns what the compiler reports.

    Raises:
        ChipError: If the compiler refuses the program, for example because it needs more memory
            than the chip has.
    """
    import jax
    import numpy as np
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import _jax

    context = mlir.make_ir_context()
    module = module_of(content, context)
    options = compiler.get_compile_options(
        num_replicas=len(devices), num_partitions=1,
        device_assignment=np.array([[device.id] for device in devices]),
    )  # fmt: skip
    wall, processor = time.perf_counter(), time.process_time()
    try:
        with context:
            program = devices[0].client.compile(
                module, executable_devices=_jax.DeviceList(tuple(devices)), compile_options=options
            )
    except jax.errors.JaxRuntimeError as error:  # too large for the chip, for example
        raise ChipError(str(error).partition("\n")[0]) from error
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    return {
        "device": devices[0].device_kind,
        "jax": jax.__version__,
        "compile_seconds": round(wall, 1),
        "processor_seconds": round(processor, 1),
        **facts_of(program),
    }


def facts_of(program):
    """Returns memory, overwritten arguments and all-reduces of a compiled program."""
    memory = program.get_compiled_memory_stats()
    text = program.hlo_modules()[0].to_string()
    header = text.partition("\n")[0]
    return {
        "argument_bytes": memory.argument_size_in_bytes,
        "aliased_bytes": memory.alias_size_in_bytes,
        "temporary_bytes": memory.temp_size_in_bytes,
        "code_bytes": memory.generated_code_size_in_bytes,
        "donated": len(ALIAS.findall(header)),
        "all_reduces": len(ALL_REDUCE.findall(text)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("chip", choices=[*TPUS, *GPUS])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--replicas", type=int, default=1)
    arguments = parser.parse_args()
    os.environ |= ENVIRONMENT
    try:
        devices = devices_of(arguments.chip, arguments.replicas)[: arguments.replicas]
        print(json.dumps(compile_for(devices, arguments.file.read_bytes())))
    except ChipError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
