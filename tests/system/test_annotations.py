"""Type hints of the public API: every parameter and every result has one."""

import ast
import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
STUBS = {"keras_transformer": "keras_transformer", "export": "keras_transformer.export"}
# Methods that users call by an operator or a call, not by their name.
SPECIAL = ("__init__", "__call__", "__len__", "__iter__", "__getitem__", "__enter__", "__exit__")


def documented():
    """Yields the full names of `docs/api/*.md`, and those of the packages' lists of names."""
    for page in sorted((ROOT / "docs" / "api").glob("*.md")):
        yield from re.findall(r"^::: ([\w.]+)$", page.read_text(), re.MULTILINE)
    for folder in ("keras_transformer", "export"):
        for node in tree_of(ROOT / folder / "__init__.pyi").body:
            if isinstance(node, ast.ImportFrom):
                yield from (f"{folder}.{node.module}.{alias.name}" for alias in node.names)


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text())


def file_of(module):
    """Returns the file of a module of these packages, or `None` for a module of another one."""
    parts = module.split(".")
    if parts[:2] in (["keras_transformer", "training"], ["keras_transformer", "export"]):
        parts = parts[1:]
    place = ROOT.joinpath(*parts)
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if file.exists()), None)


@functools.cache
def definition(path, name):
    """Returns a class or function and its file, followed through imports; `None` if not ours."""
    for node in tree_of(path).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node, path
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    module = absolute(node, path)
                    file = file_of(f"{module}.{alias.name}")
                    if file is not None:
                        return None  # a module
                    file = file_of(module)
                    return file and definition(file, alias.name)
    return None


def absolute(node, path):
    """Returns the full name of the module from which a statement imports."""
    package = path.relative_to(ROOT).parent.parts
    base = package[: len(package) - node.level + 1] if node.level else ()
    return ".".join([*base, *([node.module] if node.module else [])])


def bases(node, path):
    """Yields a class and its base classes of these packages, with their files."""
    yield node, path
    for base in node.bases:
        found = definition_of_base(base, path)
        if found is not None:
            yield from bases(*found)


def definition_of_base(base, path):
    if isinstance(base, ast.Name):
        return definition(path, base.id)
    if isinstance(base, ast.Attribute) and isinstance(base.value, ast.Name):
        for node in tree_of(path).body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if base.value.id == (alias.asname or alias.name):
                        file = file_of(f"{absolute(node, path)}.{alias.name}")
                        return file and definition(file, base.attr)
    return None


def functions(name):
    """Yields the functions that users of a name call, with the places where they are defined."""
    module, _, last = name.rpartition(".")
    found = definition(file_of(module), last)
    if found is None:
        return
    node, path = found
    if isinstance(node, ast.FunctionDef):
        yield f"{path.relative_to(ROOT)}: {node.name}", node, False
        return
    for owner, file in bases(node, path):
        for member in owner.body:
            if isinstance(member, ast.FunctionDef) and (
                not member.name.startswith("_") or member.name in SPECIAL
            ):
                static = any(
                    isinstance(d, ast.Name) and d.id == "staticmethod"
                    for d in member.decorator_list
                )
                place = f"{file.relative_to(ROOT)}: {owner.name}.{member.name}"
                yield place, member, not static


def missing(function, bound):
    """Yields the names of the parameters without an annotation, and `return`."""
    own = function.args
    positional = [*own.posonlyargs, *own.args][1 if bound else 0 :]
    for parameter in [*positional, *own.kwonlyargs, own.vararg, own.kwarg]:
        if parameter is not None and parameter.annotation is None:
            yield parameter.arg
    if function.returns is None and function.name != "__init__":
        yield "return"


def test_public_functions_have_type_hints():
    names = sorted(set(documented()))
    assert len(names) > 150
    lacking = {}
    for name in names:
        for place, function, bound in functions(name):
            if gaps := list(missing(function, bound)):
                lacking[place] = gaps
    assert not lacking, "\n".join(f"{place}({', '.join(of)})" for place, of in lacking.items())
