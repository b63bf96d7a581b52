"""What keeps the code readable, as rules: each takes the files and names what breaks it.

Nothing here counts to forbid. A file is as long as its idea and a class as large as the thing it
owns; what is larger than most stands in a list with its reason, so that growth is a decision which
somebody wrote down. Imports from rooms above are `lint-imports`' to find.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import PurePosixPath
from typing import TypeAlias

LINE_COLUMNS = 100

# Above these a file, function or class stands in LARGE.
LISTED_FILE_LINES = 600
LISTED_FUNCTION_LINES = 100
LISTED_CLASS_ATTRIBUTES = 15
LISTED_CLASS_PUBLIC_METHODS = 20

# What is large, "path" or "path::name", and why it is one thing.
LARGE: dict[str, str] = {
    "src/evertide/catalog/snapshot.py::Snapshot": (
        "every question about the catalog at one timestamp; each answer reads one map"
    ),
}

CODE_SUFFIXES = {".py", ".toml", ".yaml", ".yml", ".sh", ".js", ".mjs", ""}
# Licences quote addresses, and these two files must spell what they forbid.
SPELLS_THE_FORBIDDEN = {"LICENSE", "tests/support/tidy.py", "tests/test_tidy.py"}

VAGUE_WORDS = {"manager", "managers", "helper", "helpers", "util", "utils", "common"}
UNOWNED_TODO = re.compile(r"\b(?:TODO|FIXME)\b(?!\(#\d+\))")
MACHINE_PATH = re.compile(r"(?<![\w.*}/-])/(?:(?:work|root)(?![\w-])|(?:tmp|home|Users|opt)/\w)")
REGISTRY = re.compile(r"//[^\s\"'<>]*(?:pypi|npmjs|\bregistry\.|pythonhosted|/simple\b)", re.I)
PIN = re.compile(r"[A-Za-z0-9][\w.-]*==[\w.!]+")
ROOM_INIT = re.compile(r"src/evertide/(?:\w+/)?__init__\.py")
LOCK_FILES = {"package-lock.json", "uv.lock", "poetry.lock", "yarn.lock", "Pipfile.lock"}

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class SourceFile:
    """One tracked file; `path` is relative to the repository, with forward slashes."""

    path: str
    text: str

    @property
    def is_python(self) -> bool:
        return self.path.endswith(".py")

    @property
    def is_code(self) -> bool:
        return PurePosixPath(self.path).suffix in CODE_SUFFIXES

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text) if self.is_python else ast.Module([], [])

    @cached_property
    def functions(self) -> list[Function]:
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]

    @cached_property
    def module(self) -> str | None:
        """What a room's own files are imported as."""
        if not self.path.startswith("src/evertide/") or not self.is_python:
            return None
        parts = PurePosixPath(self.path).with_suffix("").parts[1:]
        return ".".join(parts).removesuffix(".__init__")


@dataclass(frozen=True)
class Violation:
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


Files: TypeAlias = Sequence[SourceFile]
Rule: TypeAlias = Callable[[Files], Iterator[Violation]]


def of_each_file(check: Callable[[SourceFile], Iterator[Violation]]) -> Rule:
    """A rule that looks at one file at a time."""

    @wraps(check)
    def rule(files: Files) -> Iterator[Violation]:
        for file in files:
            yield from check(file)

    return rule


@of_each_file
def lines_are_short(file: SourceFile) -> Iterator[Violation]:
    if not file.is_code or file.path == "LICENSE":
        return
    for number, line in enumerate(file.lines, 1):
        if len(line) > LINE_COLUMNS:
            yield Violation(file.path, number, f"line has {len(line)} columns")


def whatever_is_large_has_a_reason(files: Files) -> Iterator[Violation]:
    for key, violation in large_ones(files):
        if key not in LARGE:
            yield violation


def large_ones(files: Files) -> Iterator[tuple[str, Violation]]:
    """What belongs into LARGE, by its key there."""
    for file in files:
        if file.is_python and len(file.lines) > LISTED_FILE_LINES:
            yield file.path, _large(file, 1, "file", f"{len(file.lines)} lines")
        for function in file.functions:
            length = (function.end_lineno or function.lineno) - function.lineno + 1
            if length > LISTED_FUNCTION_LINES:
                yield _large_part(file, function, f"{length} lines")
        for node in file.classes:
            attributes = _state(node)
            methods = [method for method in _methods(node) if not method.name.startswith("_")]
            if len(attributes) > LISTED_CLASS_ATTRIBUTES:
                yield _large_part(file, node, f"{len(attributes)} attributes")
            if len(methods) > LISTED_CLASS_PUBLIC_METHODS:
                yield _large_part(file, node, f"{len(methods)} public methods")


def _large_part(
    file: SourceFile, node: Function | ast.ClassDef, size: str
) -> tuple[str, Violation]:
    return f"{file.path}::{node.name}", _large(file, node.lineno, node.name, size)


def _large(file: SourceFile, line: int, name: str, size: str) -> Violation:
    return Violation(file.path, line, f"{name} has {size}; say in LARGE why it is one thing")


@of_each_file
def imports_are_at_the_top(file: SourceFile) -> Iterator[Violation]:
    for function in file.functions:
        for node in ast.walk(function):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield Violation(file.path, node.lineno, f"import inside {function.name}")


@of_each_file
def every_todo_has_an_issue(file: SourceFile) -> Iterator[Violation]:
    if not file.is_code or file.path in SPELLS_THE_FORBIDDEN:
        return
    for number, line in enumerate(file.lines, 1):
        if UNOWNED_TODO.search(line):
            yield Violation(file.path, number, "names no issue; write it with (#number)")


def _methods(node: ast.ClassDef) -> list[Function]:
    return [child for child in node.body if isinstance(child, Function)]


def _state(node: ast.ClassDef) -> set[str]:
    """The attributes that methods assign; a class that changes nothing is a record, not state."""
    if _is_record(node):
        return set()
    attributes = set()
    for method in _methods(node):
        attributes |= set(_self_assignments(method))
    if any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
        fields = [child.target for child in node.body if isinstance(child, ast.AnnAssign)]
        attributes |= {field.id for field in fields if isinstance(field, ast.Name)}
    return attributes


def _is_record(node: ast.ClassDef) -> bool:
    """Frozen, or a kind of class whose fields are not state: an exception, an interface."""
    declared = [*node.decorator_list, *(keyword for keyword in node.keywords)]
    if any("frozen=True" in ast.unparse(part) for part in declared):
        return True
    bases = {ast.unparse(base).split("[")[0] for base in node.bases}
    named = {"Protocol", "typing.Protocol", "NamedTuple", "TypedDict", "Enum", "IntEnum", "StrEnum"}
    return bool(bases & named) or any(base.endswith(("Error", "Exception")) for base in bases)


def _self_assignments(method: Function) -> Iterator[str]:
    for node in ast.walk(method):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), ctx=ast.Store()):
                yield node.attr


@of_each_file
def room_inits_hold_only_a_docstring(file: SourceFile) -> Iterator[Violation]:
    if not ROOM_INIT.fullmatch(file.path):
        return
    if len(file.tree.body) != 1 or ast.get_docstring(file.tree) is None:
        yield Violation(file.path, 1, "holds something else than one docstring")


@of_each_file
def no_machine_is_named(file: SourceFile) -> Iterator[Violation]:
    if file.path in SPELLS_THE_FORBIDDEN:
        return
    for number, line in enumerate(file.lines, 1):
        found = MACHINE_PATH.search(line) or REGISTRY.search(line)
        if found:
            yield Violation(file.path, number, f"names a machine or registry: {found.group()}")


@of_each_file
def names_are_telling(file: SourceFile) -> Iterator[Violation]:
    words = set(re.split(r"[^a-z]+", file.path.lower()))
    for word in sorted(words & VAGUE_WORDS):
        yield Violation(file.path, 1, f'the word "{word}" says nothing')


@of_each_file
def constraints_are_plain_pins(file: SourceFile) -> Iterator[Violation]:
    if file.path != "constraints.txt":
        return
    for number, line in enumerate(file.lines, 1):
        if line and not line.startswith("#") and not PIN.fullmatch(line):
            yield Violation(file.path, number, f"is not name==version: {line}")


@of_each_file
def no_lock_file_is_kept(file: SourceFile) -> Iterator[Violation]:
    if PurePosixPath(file.path).name in LOCK_FILES:
        yield Violation(file.path, 1, "lock files hold download addresses; pin versions instead")


RULES: tuple[Rule, ...] = (
    lines_are_short,
    whatever_is_large_has_a_reason,
    imports_are_at_the_top,
    every_todo_has_an_issue,
    room_inits_hold_only_a_docstring,
    no_machine_is_named,
    names_are_telling,
    constraints_are_plain_pins,
    no_lock_file_is_kept,
)
