"""Type hints of the public API: every parameter and every result has one."""

import ast
import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
# Methods of classes that users call, although their names begin with an underscore.
SPECIAL = ("__init__", "__call__", "__len__", "__iter__", "__getitem__", "__enter__", "__exit__")


def public_names():
    """Yields the full names on the pages of `docs/api`, and in the packages' lists of names."""
    for page in sorted((ROOT / "docs" / "api").glob("*.md")):
        yield from re.findall(r"^::: ([\w.]+)$", page.read_text(), re.MULTILINE)
    for stub in (*ROOT.glob("keras_transformer/[!et]*/__init__.pyi"), *ROOT.glob("*/__init__.pyi")):
        package = stub.relative_to(ROOT).parent.parts
        for node in tree_of(stub).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                place = package[: len(package) - node.level + 1]
                yield from (".".join([*place, node.module, x.name]) for x in node.names)


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text())


def file_of(module):
    """Returns the file of a module of these packages, or `None` for another module."""
    for package in ("training", "export"):  # they stand at the top level
        module = re.sub(rf"^keras_transformer\.{package}\b", package, module)
    place = ROOT.joinpath(*module.split("."))
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if file.exists()), None)


def imported(path, name):
    """Returns the full name of what a file imports as `name`, or `None`."""
    for node in tree_of(path).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    package = path.relative_to(ROOT).parent.parts[: -(node.level - 1) or None]
                    module = [*(package if node.level else ()), *filter(None, [node.module])]
                    return ".".join([*module, alias.name])
    return None


def definition(full_name):
    """Returns a class or function, and its file; `None` for values and names of other packages."""
    module, _, name = full_name.rpartition(".")
    path = file_of(module) if module else None
    if path is None:
        return None
    for node in tree_of(path).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node, path
    target = imported(path, name)
    return definition(target) if target else None


def with_bases(node, path):
    """Yields a class and its base classes of these packages, each with its file."""
    yield node, path
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for base in node.bases:
        first, *rest = ast.unparse(base).split(".")
        full_name = imported(path, first) or f"{module}.{first}"
        if parent := definition(".".join([full_name, *rest])):
            yield from with_bases(*parent)


def functions(full_name):
    """Yields the places and definitions of the functions and methods that a name offers."""
    node, path = definition(full_name) or (None, None)
    if isinstance(node, ast.FunctionDef):
        yield f"{path.relative_to(ROOT)}: {node.name}", node
    elif isinstance(node, ast.ClassDef):
        for owner, file in with_bases(node, path):
            for member in owner.body:
                if isinstance(member, ast.FunctionDef) and (
                    member.name in SPECIAL or not member.name.startswith("_")
                ):
                    yield f"{file.relative_to(ROOT)}: {owner.name}.{member.name}", member


def gaps(function):
    """Returns the parameters that have no annotation, and `return` if the result has none."""
    given = function.args
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    bare = [p.arg for p in parameters if p is not None and p.annotation is None]
    if function.returns is None and function.name != "__init__":
        bare.append("return")
    return [name for name in bare if name not in ("self", "cls")]


def test_base_classes_are_followed_through_imports():
    places = dict(functions("keras_transformer.tasks.translation.pipeline.Translator"))
    assert "keras_transformer/tasks/pipeline.py: Pipeline.from_run" in places
    assert "keras_transformer/positions/position.py: Position.rotate" in dict(
        functions("keras_transformer.positions.rotary.Rotary")
    )


def test_public_functions_have_type_hints():
    names = sorted(set(public_names()))
    assert len(names) > 150
    lacking = {
        f"{place}: {', '.join(gaps(function))}"
        for name in names
        for place, function in functions(name)
        if gaps(function)
    }
    assert not lacking, "\n".join(sorted(lacking))
