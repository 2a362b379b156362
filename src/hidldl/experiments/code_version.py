"""Which code made a result: a digest of a class's source and of all that it uses of this package.

Sources are read, not run: imports are found in the syntax tree. Comments, docstrings and what only type checkers import
do not count. Sources are read once per process.
"""

import ast
import hashlib
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.util import find_spec, resolve_name
from typing import Any

PACKAGE = "hidldl"


@cache
def code_version(of: type | str) -> str:
    """A digest that changes whenever the code of a class, or of a module named, may compute something else."""
    module = of if isinstance(of, str) else of.__module__
    source = _source(module) if isinstance(of, str) or _source(module) else _class_source(of)
    used = _reach(frozenset(_imports(ast.parse(source), module)))
    parts = [normalized(source), *(normalized(_source(name)) for name in sorted(used - {module}))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@cache
def normalized(source: str) -> str:
    """The source without comments, docstrings and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [statement for statement in node.body if not _is_text(statement)]
    return repr(_plain(tree))


def _plain(node: Any) -> Any:
    """A syntax tree as tuples, the same in every version of Python: a store can move to another machine."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, ast.AST):
        return node
    # Newer versions have more fields, which are empty in code that older ones can read.
    fields = ((name, value) for name, value in ast.iter_fields(node) if value is not None and value != [])
    return (type(node).__name__, *((name, _plain(value)) for name, value in fields))


@cache
def _reach(modules: frozenset[str]) -> frozenset[str]:
    """These modules of the package and all that they import, directly or not."""
    seen: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += _imports(ast.parse(_source(name)), name)
    return frozenset(seen)


def _imports(tree: ast.AST, module: str) -> set[str]:
    """Modules of this package that a syntax tree imports, wherever in it that is."""
    modules: set[str] = set()
    for node in _run_nodes(tree):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names if alias.name.split(".")[0] == PACKAGE)
        elif isinstance(node, ast.ImportFrom):
            home = resolve_name("." * node.level + (node.module or ""), module.rpartition(".")[0] or module)
            if home.split(".")[0] == PACKAGE:
                modules.update(_home_of(home, alias.name) for alias in node.names)
    return modules - {PACKAGE}


def _run_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Every node but those that only type checkers see."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING")):
            yield from _run_nodes(child)


def _home_of(module: str, name: str) -> str:
    """The module that ``from module import name`` needs."""
    if module == PACKAGE:
        return _public_names().get(name) or f"{PACKAGE}.{name}"
    return f"{module}.{name}" if _is_package(module) and find_spec(f"{module}.{name}") else module


@cache
def _public_names() -> dict[str, str]:
    """The module of every public name, from the list that ``hidldl/__init__.py`` loads them by."""
    listed = ast.parse((files(PACKAGE) / "__init__.pyi").read_text(encoding="utf-8"))
    return {
        alias.name: f"{PACKAGE}.{node.module}"
        for node in ast.walk(listed)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@cache
def _is_package(module: str) -> bool:
    spec = find_spec(module)
    return spec is not None and spec.submodule_search_locations is not None


@cache
def _source(module: str) -> str:
    """The source of a module, empty where there is none to read."""
    try:
        spec: Any = getattr(sys.modules.get(module), "__spec__", None) or find_spec(module)
        return spec.loader.get_source(module) or ""
    except (AttributeError, ImportError, OSError, ValueError):
        return ""


def _class_source(kind: type) -> str:
    """The source of a class that was typed into a prompt or a notebook, if it can be had."""
    try:
        return inspect.cleandoc("\n" + inspect.getsource(kind))
    except (OSError, TypeError):
        return ""


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
