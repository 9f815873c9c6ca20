"""Stubs of modules whose constructors take options by name, for type checkers and editors.

    python .ci/stubs.py

A constructor of a layer or of a model's configuration takes the options of several dataclasses, in
which each is declared once. The stub next to the module lists them as explicit arguments, with the
types and defaults of the fields; a model takes those of its configuration. It also has everything
else of the module, without bodies.
"""

import ast
import collections.abc
import dataclasses
import importlib
import inspect
import pathlib
import subprocess
import sys
import types
import typing
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from keras_transformer.arguments import accepted, options_of  # noqa: E402
from keras_transformer.config import ModelConfig  # noqa: E402
from keras_transformer.models.model import ConfiguredModel  # noqa: E402

LAYERS = ("layers/attention", "layers/multi_head", "layers/blocks/encoder", "layers/blocks/decoder")
VALUES = ("mixers/attention", "mixers/self_attention")
CONFIGURATIONS = ("config/block", "config/stack", "config/transformer")
MODELS = ("models/transformer",)
FIRST = "# Written by `make stubs`. Options are declared in the configurations, each once.\n"
DECORATORS = ("property", "classmethod", "staticmethod", "dataclass", "declared", "cached_property")
# Arguments of every layer, in place of `**kwargs`.
OF_LAYERS = (
    "kernels: Kernels = ...",
    "activity_regularizer: Any = None",
    "trainable: bool = True",
    "dtype: Any = None",
    "autocast: bool = True",
    "name: str | None = None",
)
IMPORTED = {
    "Any": "typing",
    "Callable": "collections.abc",
    "Kernels": "keras_transformer.layers.kernels",
    "Literal": "typing",
    "Self": "typing",
    "TypedDict": "typing_extensions",  # `closed`
    "Unpack": "typing",
    "overload": "typing",
}
PLAIN = (bool, int, float, str, types.NoneType)


def stubbed() -> list[pathlib.Path]:
    """Returns the files of the modules that have a stub: those of each task too."""
    package = ROOT / "keras_transformer"
    own = [package / f"{name}.py" for name in (*VALUES, *CONFIGURATIONS, *LAYERS, *MODELS)]
    tasks = sorted(package.glob("tasks/*"))
    of_tasks = [folder / name for folder in tasks for name in ("config.py", "model.py")]
    return [*own, *(path for path in of_tasks if path.exists())]


def stub_of(path: pathlib.Path) -> str:
    """Returns the stub of a module, not yet formatted."""
    return Stub(path).text()


class Stub:
    """The stub of a module.

    Args:
        path: File of the module.
    """

    def __init__(self, path):
        self.tree = ast.parse(path.read_text("utf-8"))
        self.name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        self.module = importlib.import_module(self.name)
        self.imports = {}  # statements by the name that they import
        self.lines = []

    def text(self) -> str:
        """Returns the text of the stub, with the imports that it needs."""
        for node in self.tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._add_import(node)
            elif isinstance(node, ast.ClassDef):
                self._add_class(node)
            elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                self._add_function(node, "")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                self._add_value(node, self.module, "")
        body = "\n".join(self.lines)
        used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
        statements = {self.imports[name] for name in self.imports if name in used}
        return "\n".join([FIRST, *sorted(statements), "", body, ""])

    def _add_import(self, node):
        for alias in node.names:
            single = type(node)(**{**vars(node), "names": [alias]})
            name = (alias.asname or alias.name).partition(".")[0]
            self.imports[name] = ast.unparse(single)

    def _add_value(self, node, owner, indent):
        """Adds a value of the module or of a class, with its type."""
        if isinstance(node, ast.AnnAssign):
            value = "" if node.value is None else " = ..."
            annotation = ast.unparse(node.annotation)
            self.lines.append(f"{indent}{ast.unparse(node.target)}: {annotation}{value}")
            return
        for name in (item.id for item in node.targets if isinstance(item, ast.Name)):
            value = getattr(owner, name)
            is_type = typing.get_origin(value) is not None or isinstance(value, typing.TypeVar)
            if owner is self.module and is_type:
                self.lines.append(ast.unparse(node))
            elif owner is self.module or not inherited(owner, name):
                self.lines.append(f"{indent}{name}: {self._type_text(type(value))}")

    def _add_class(self, node):
        owner = getattr(self.module, node.name)
        if issubclass(owner, ModelConfig):
            self._add_options(owner)
        self._add_decorators(node, "")
        bases = ", ".join(map(ast.unparse, node.bases))
        self.lines.append(f"class {node.name}({bases}):" if bases else f"class {node.name}:")
        indent, start = "    ", len(self.lines)
        explicit = self._explicit(owner)
        for child in node.body:
            if isinstance(child, ast.Assign | ast.AnnAssign):
                self._add_value(child, owner, indent)
        declared = {line.strip().partition(":")[0] for line in self.lines[start:]}
        for name in attributes_of(node):
            if name not in declared:
                self.lines.append(f"{indent}{name}: {self._used('Any')}")
        for parameters in explicit:
            if len(explicit) > 1:
                self.lines.append(f"    @{self._used('overload')}")
            self._add_signature("__init__", ["self", *parameters], "None")
        for child in node.body:
            if isinstance(child, ast.FunctionDef) and not (explicit and child.name == "__init__"):
                self._add_function(child, indent)
        if issubclass(owner, ModelConfig):
            self._add_preset(owner)
        if len(self.lines) == start:
            self.lines.append(f"{indent}pass")

    def _add_function(self, node, indent):
        self._add_decorators(node, indent)
        body = [ast.Expr(ast.Constant(...))]
        empty = ast.FunctionDef(**{**vars(node), "body": body, "decorator_list": []})
        text = ast.unparse(ast.fix_missing_locations(Unquoted().visit(empty)))
        self.lines.append(indent + text.replace(":\n    ...", ": ..."))

    def _add_decorators(self, node, indent):
        for decorator in node.decorator_list:
            text = ast.unparse(decorator)
            name = text.partition("(")[0].rpartition(".")[2]
            if name in DECORATORS:
                self.lines.append(f"{indent}@{text}")

    def _add_signature(self, name, parameters, result):
        self.lines.append(f"    def {name}(")
        self.lines += [f"        {parameter}," for parameter in parameters]
        self.lines.append(f"    ) -> {result}: ...")

    def _add_options(self, config):
        """Adds the type of the options of a model by name."""
        names = self._used("TypedDict")
        self.lines.append(f"class {options_name(config)}({names}, total=False, closed=True):")
        for parameter in inspect.signature(config).parameters.values():
            self.lines.append(f"    {parameter.name}: {self._type_text(parameter.annotation)}")

    def _add_preset(self, config):
        changes = f"{self._used('Unpack')}[{options_name(config)}]"
        self.lines += [
            "    @classmethod",
            f"    def preset(cls, name: str, **changes: {changes}) -> {self._used('Self')}: ...",
        ]

    def _explicit(self, owner):
        """Returns the arguments of a constructor that its source does not list; often none.

        A block without attention has no `num_heads`, and a list of arguments of its own.
        """
        fields = options_of(owner) if dataclasses.is_dataclass(owner) else {}
        if issubclass(owner, ModelConfig):
            parameters = [*inspect.signature(owner).parameters.values()]
        elif issubclass(owner, ConfiguredModel) and owner.config_class is not None:
            return [self._of_model(owner.config_class)]
        elif hasattr(owner.__init__, "__signature__"):
            parameters = [*inspect.signature(owner.__init__).parameters.values()][1:]
            if {"num_heads", "d_ff"} <= {one.name for one in parameters}:
                return [self._listed(kind) for kind in with_and_without_heads(parameters)]
        elif any(field.metadata["of"] is not None for field in fields.values()):
            parameters = [
                one.replace(annotation=accepted(fields[name]) if name in fields else one.annotation)
                for name, one in inspect.signature(owner).parameters.items()
            ]
        else:
            return []
        return [self._listed(parameters)]

    def _of_model(self, config):
        """Returns the arguments of a model with this class of configuration."""
        name = options_name(config)
        self.imports[name] = f"from {config.__module__} import {name}"
        parameters = [*inspect.signature(ConfiguredModel).parameters.values()]
        first = f"config: {self._type_text(config)} | str | None = None"
        rest = self._listed(parameters[1:-1])
        return [first, *rest, f"**options: {self._used('Unpack')}[{name}]"]

    def _listed(self, parameters):
        """Returns arguments as text, with those of every layer in place of `**kwargs`."""
        texts, by_name = [], False
        for one in parameters:
            if one.kind is one.VAR_KEYWORD:
                self._used("Kernels", "Any")
                texts += OF_LAYERS
                continue
            if one.kind is one.KEYWORD_ONLY and not by_name:
                texts.append("*")
                by_name = True
            default = "" if one.default is one.empty else f" = {default_text(one.default)}"
            texts.append(f"{one.name}: {self._type_text(one.annotation)}{default}")
        return texts

    def _used(self, *names):
        for name in names:
            self.imports[name] = f"from {IMPORTED[name]} import {name}"
        return names[0]

    def _type_text(self, kind) -> str:
        """Returns a type as text, and notes the imports that it needs."""
        arguments = typing.get_args(kind)
        origin = typing.get_origin(kind)
        if kind is None or kind is types.NoneType:
            return "None"
        if kind is ...:
            return "..."
        if origin is typing.Annotated:
            return self._type_text(arguments[0])
        if origin is typing.Literal:
            return f"{self._used('Literal')}[{', '.join(map(repr, arguments))}]"
        if origin in (typing.Union, types.UnionType):
            members = sorted(arguments, key=lambda member: member is types.NoneType)
            return " | ".join(map(self._type_text, members))
        if kind is Any or origin is collections.abc.Callable:
            return self._used("Any") if kind is Any else f"{self._used('Callable')}[..., Any]"
        if origin is not None:
            return f"{self._type_text(origin)}[{', '.join(map(self._type_text, arguments))}]"
        if kind.__module__ not in ("builtins", self.name):
            self.imports[kind.__name__] = f"from {kind.__module__} import {kind.__name__}"
        return kind.__name__


class Unquoted(ast.NodeTransformer):
    """Types of arguments and results without the quotation marks that a stub does not need."""

    def visit_FunctionDef(self, node):  # noqa: D102
        node.returns = _unquoted(node.returns)
        return self.generic_visit(node)

    def visit_arg(self, node):  # noqa: D102
        node.annotation = _unquoted(node.annotation)
        return node


def _unquoted(node):
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return ast.parse(node.value, mode="eval").body if is_text else node


def with_and_without_heads(parameters: list[inspect.Parameter]) -> list[list[inspect.Parameter]]:
    """Returns the arguments of a block with `num_heads`, and without it, both with `d_ff`."""
    empty, by_name = inspect.Parameter.empty, inspect.Parameter.KEYWORD_ONLY
    needed = {"num_heads": int | None, "d_ff": int}
    first = [
        one.replace(default=empty, annotation=needed[one.name]) if one.name in needed else one
        for one in parameters
    ]
    place = [one.name for one in parameters].index("num_heads")
    later = [one if one.kind is one.VAR_KEYWORD else one.replace(kind=by_name) for one in first]
    return [first, first[:place] + later[place + 1 :]]


def options_name(config: type) -> str:
    """Returns the name of the type of a model's options, such as `TransformerOptions`."""
    return config.__name__.removesuffix("Config") + "Options"


def default_text(value: Any) -> str:
    """Returns a default as text; `...` for an object."""
    items = value if isinstance(value, tuple) else [value]
    return repr(value) if all(isinstance(item, PLAIN) for item in items) else "..."


def inherited(owner: type, name: str) -> bool:
    """Returns whether a base class has an attribute or declares its type."""
    declared = [{*vars(base), *vars(base).get("__annotations__", {})} for base in owner.__mro__[1:]]
    return any(name in names for names in declared)


def attributes_of(node: ast.ClassDef) -> list[str]:
    """Returns the names of the attributes that the methods of a class set, in order."""
    found = {}
    for target in ast.walk(node):
        is_attribute = isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store)
        if is_attribute and isinstance(target.value, ast.Name) and target.value.id == "self":
            found[target.attr] = None
    return [*found]


def formatted(text: str, path: pathlib.Path) -> str:
    """Returns a stub in the style of the project."""
    ruff = [sys.executable, "-m", "ruff"]
    name = ["--stdin-filename", str(path), "-"]
    for step in (["check", "--quiet", "--fix-only"], ["format", "--quiet"]):
        done = subprocess.run([*ruff, *step, *name], input=text, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{path}: {done.stderr}")
        text = done.stdout
    return text


def main() -> None:
    """Writes the stubs."""
    for path in stubbed():
        stub = path.with_suffix(".pyi")
        stub.write_text(formatted(stub_of(path), stub), "utf-8")
        print(stub.relative_to(ROOT))  # noqa: T201


if __name__ == "__main__":
    main()
