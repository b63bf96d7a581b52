"""The repository keeps its own rules, and each rule is shown to catch what it is for."""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import pytest

from tests.support import imports, tidy
from tests.support.tidy import Rule, SourceFile

ROOT = Path(__file__).parent.parent
RULES = (*tidy.RULES, *imports.RULES)
Key = TypeVar("Key")
ROOMS = (
    "cli pgwire adapter controller external spark dataflow sql catalog expr oracle persist vocab"
)


def source_files(root: Path) -> Iterator[SourceFile]:
    """Files that are tracked, or would be: a new file is checked before it is committed."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.check_output(command, cwd=root, text=True)
    for path in sorted(set(listed.split("\0")) - {""}):
        file = root / path
        # A tracked file may be deleted, a binary one has no lines.
        if file.is_file() and b"\0" not in (content := file.read_bytes()):
            yield SourceFile(path, content.decode("utf-8"))


@pytest.fixture(scope="module")
def repository() -> list[SourceFile]:
    return list(source_files(ROOT))


@pytest.mark.parametrize("rule", RULES)
def test_the_repository_keeps(repository: list[SourceFile], rule: Rule) -> None:
    found = list(rule(repository))
    assert not found, "\n" + "\n".join(map(str, found))


def test_every_room_is_there() -> None:
    for room in ROOMS.split():
        assert (ROOT / "src" / "evertide" / room / "__init__.py").is_file(), room


def test_what_is_said_to_be_large_is_large(repository: list[SourceFile]) -> None:
    assert set(tidy.LARGE) == {key for key, _ in tidy.large_ones(repository)}


def test_every_known_circle_is_still_there(repository: list[SourceFile]) -> None:
    found = list(imports.imports_of(repository))
    for package in imports.RECURSIVE_PACKAGES:
        others = without(imports.RECURSIVE_PACKAGES, package)
        assert list(imports.cycles_of_modules(found, others)), package
    for step in imports.BACKWARD_IMPORTS:
        assert list(imports.cycles_of_parts(found, without(imports.BACKWARD_IMPORTS, step))), step


def without(known: Mapping[Key, str], key: Key) -> dict[Key, str]:
    return {other: reason for other, reason in known.items() if other != key}


def function(lines: int) -> str:
    return "def f():\n" + "    pass\n" * (lines - 1)


def stateful(attributes: int, methods: int) -> str:
    state = "".join(f"        self.a{n} = {n}\n" for n in range(attributes)) or "        pass\n"
    public = "".join(f"    def m{n}(self): ...\n" for n in range(methods))
    return f"class C:\n    def __init__(self):\n{state}{public}"


def fields(count: int, decorator: str) -> str:
    return f"{decorator}\nclass C:\n" + "".join(f"    a{n}: int\n" for n in range(count))


LARGE = tidy.whatever_is_large_has_a_reason
BROKEN = [
    (tidy.lines_are_short, "bench/a.py", "x" * 101),
    (tidy.lines_are_short, "Makefile", "x" * 101),
    (LARGE, "bench/a.py", "x = 1\n" * 601),
    (LARGE, "bench/a.py", function(101)),
    (LARGE, "bench/a.py", "async " + function(101)),
    (LARGE, "src/a.py", stateful(16, 1)),
    (LARGE, "src/a.py", stateful(1, 21)),
    (LARGE, "src/a.py", stateful(0, 21)),
    (LARGE, "src/a.py", fields(16, "@dataclass")),
    (tidy.imports_are_at_the_top, "bench/a.py", "def f():\n    import os\n"),
    (tidy.imports_are_at_the_top, "bench/a.py", "def f():\n    if 1:\n        from a import b\n"),
    (tidy.every_todo_has_an_issue, "bench/a.py", "# TODO: later\n"),
    (tidy.every_todo_has_an_issue, "Makefile", "# FIXME(me) later\n"),
    (tidy.room_inits_hold_only_a_docstring, "src/evertide/sql/__init__.py", '"""A."""\nx = 1\n'),
    (tidy.room_inits_hold_only_a_docstring, "src/evertide/sql/__init__.py", ""),
    (tidy.no_machine_is_named, "docs/a.md", "see /work/main for more\n"),
    (tidy.no_machine_is_named, "docs/a.md", "in `/root`\n"),
    (tidy.no_machine_is_named, "a.toml", 'path = "/tmp/xyz"\n'),
    (tidy.no_machine_is_named, "a.toml", 'index = "https://pypi.example/simple"\n'),
    (tidy.no_machine_is_named, "package.json", '"http://registry.example/pg.tgz"\n'),
    (tidy.names_are_telling, "src/evertide/sql/plan_helpers.py", ""),
    (tidy.names_are_telling, "src/evertide/utils/text.py", ""),
    (tidy.constraints_are_plain_pins, "constraints.txt", "a==1.0\nb>=2\n"),
    (tidy.constraints_are_plain_pins, "constraints.txt", "a @ https://example.org/a.whl\n"),
    (tidy.constraints_are_plain_pins, "constraints.txt", "a==1 --hash=sha256:00\n"),
    (tidy.no_lock_file_is_kept, "tests/wire/node/package-lock.json", "{}"),
]

SOUND = [
    (tidy.lines_are_short, "bench/a.py", "x" * 100),
    (LARGE, "bench/a.py", "x = 1\n" * 600),
    (LARGE, "bench/a.py", function(100)),
    (LARGE, "src/a.py", stateful(15, 20)),
    (LARGE, "src/a.py", fields(16, "@dataclass(frozen=True)")),
    (tidy.every_todo_has_an_issue, "bench/a.py", "# TODO(#12): later\n"),
    (tidy.room_inits_hold_only_a_docstring, "src/evertide/sql/__init__.py", '"""A."""\n'),
    (tidy.no_machine_is_named, "docs/a.md", "src/work/a, /tmp, https://www.postgresql.org/root\n"),
    (tidy.names_are_telling, "src/evertide/sql/utility.py", ""),
    (tidy.constraints_are_plain_pins, "constraints.txt", "# why\na-b.c==1.0.post1\n"),
]


PRIVATE = imports.rooms_import_nothing_private
MODULES = imports.modules_import_in_no_cycle
PARTS = imports.parts_of_a_room_import_in_no_cycle
# What modules of the rooms hold, and which of them is named.
BROKEN_IMPORTS = [
    (PRIVATE, {"sql.a": "from evertide.expr._b import c"}, "sql.a"),
    (PRIVATE, {"sql.a": "from evertide.expr.b import _c"}, "sql.a"),
    (PRIVATE, {"sql.a": "import evertide.expr._b.c"}, "sql.a"),
    (PRIVATE, {"sql.a": "from evertide.expr import _b", "expr._b": ""}, "sql.a"),
    (MODULES, {"sql.a": "from evertide.sql import b", "sql.b": "import evertide.sql.a"}, "sql.a"),
    (MODULES, {"sql.a": "from evertide.sql.a import b"}, "sql.a"),
    (
        MODULES,
        {
            "sql.x.a": "from evertide.sql.x.b import f",
            "sql.x.b": "from evertide.sql.y.c import g",
            "sql.y.c": "if TYPE_CHECKING:\n    from evertide.sql.x.a import h",
        },
        "sql.x.a",
    ),
    (
        PARTS,
        {
            "sql.x.a": "from evertide.sql.y.b import f",
            "sql.y.b": "",
            "sql.y.c": "from evertide.sql.x.d import g",
            "sql.x.d": "",
        },
        "sql.x.a",
    ),
    (
        PARTS,
        {"sql.a": "from evertide.sql.x.b import f", "sql.x.c": "from evertide.sql.a import g"},
        "sql.a",
    ),
]
SOUND_IMPORTS = [
    (PRIVATE, {"sql.a": "from evertide.sql._b import _c\nfrom os import _exit"}),
    (MODULES, {"sql.a": "from evertide.sql import b", "sql.b": "import evertide.expr.a"}),
    (
        MODULES,
        {
            "sql.parser.a": "from evertide.sql.parser import b",
            "sql.parser.b": "from evertide.sql.parser import a",
        },
    ),
    (PARTS, {"sql.x.a": "from evertide.sql.x.b import f", "sql.x.b": "import evertide.expr.a"}),
]


def plant(root: Path, path: str, text: str) -> list[SourceFile]:
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    return list(source_files(root))


def rooms(modules: Mapping[str, str]) -> list[SourceFile]:
    return [SourceFile(path_of(module), text) for module, text in modules.items()]


def path_of(module: str) -> str:
    return f"src/evertide/{module.replace('.', '/')}.py"


@pytest.mark.parametrize(("rule", "path", "text"), BROKEN)
def test_a_planted_violation_is_found(tmp_path: Path, rule: Rule, path: str, text: str) -> None:
    assert [violation.path for violation in rule(plant(tmp_path, path, text))] == [path]


@pytest.mark.parametrize(("rule", "path", "text"), SOUND)
def test_what_is_just_sound_passes(tmp_path: Path, rule: Rule, path: str, text: str) -> None:
    assert not list(rule(plant(tmp_path, path, text)))


@pytest.mark.parametrize(("rule", "modules", "named"), BROKEN_IMPORTS)
def test_a_planted_import_is_found(rule: Rule, modules: dict[str, str], named: str) -> None:
    assert [violation.path for violation in rule(rooms(modules))] == [path_of(named)]


@pytest.mark.parametrize(("rule", "modules"), SOUND_IMPORTS)
def test_sound_imports_pass(rule: Rule, modules: dict[str, str]) -> None:
    assert not list(rule(rooms(modules)))


def test_every_rule_has_a_planted_violation() -> None:
    assert {rule for rule, _, _ in [*BROKEN, *BROKEN_IMPORTS]} == set(RULES)
