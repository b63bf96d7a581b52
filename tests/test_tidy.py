"""The repository keeps its own limits, and each limit is shown to catch what it is for."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import tidy
from tests.support.tidy import Rule, SourceFile, Violation

ROOT = Path(__file__).parent.parent
ROOMS = "cli pgwire adapter controller spark dataflow sql catalog expr oracle persist vocab"


def source_files(root: Path) -> Iterator[SourceFile]:
    """Files that are tracked, or would be: a new file is checked before it is committed."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.check_output(command, cwd=root, text=True)
    for path in sorted(set(listed.split("\0")) - {""}):
        file = root / path
        # A tracked file may be deleted, a binary one has no lines.
        if file.is_file() and b"\0" not in (content := file.read_bytes()):
            yield SourceFile(path, content.decode("utf-8"))


def violations(root: Path, rule: Rule) -> list[Violation]:
    return [violation for file in source_files(root) for violation in rule(file)]


@pytest.mark.parametrize("rule", tidy.RULES)
def test_the_repository_keeps(rule: Rule) -> None:
    found = violations(ROOT, rule)
    assert not found, "\n" + "\n".join(map(str, found))


def test_every_room_is_there() -> None:
    for room in ROOMS.split():
        assert (ROOT / "src" / "evertide" / room / "__init__.py").is_file(), room


def test_every_exemption_is_still_needed() -> None:
    named = {file.path for file in source_files(ROOT)}
    assert set(tidy.DATA_TABLES) <= named
    assert {key.split("::")[0] for key in tidy.LARGE_CLASSES} <= named


def function(lines: int) -> str:
    return "def f():\n" + "    pass\n" * (lines - 1)


def stateful(attributes: int, methods: int) -> str:
    state = "".join(f"        self.a{n} = {n}\n" for n in range(attributes))
    public = "".join(f"    def m{n}(self): ...\n" for n in range(methods))
    return f"class C:\n    def __init__(self):\n{state}{public}"


def fields(count: int, decorator: str) -> str:
    return f"{decorator}\nclass C:\n" + "".join(f"    a{n}: int\n" for n in range(count))


BROKEN = [
    (tidy.lines_are_short, "bench/a.py", "x" * 101),
    (tidy.lines_are_short, "Makefile", "x" * 101),
    (tidy.functions_are_short, "bench/a.py", function(71)),
    (tidy.functions_are_short, "bench/a.py", "async " + function(71)),
    (tidy.files_are_short, "bench/a.py", function(2) + "x = 1\n" * 499),
    (tidy.imports_are_at_the_top, "bench/a.py", "def f():\n    import os\n"),
    (tidy.imports_are_at_the_top, "bench/a.py", "def f():\n    if 1:\n        from a import b\n"),
    (tidy.every_todo_has_an_issue, "bench/a.py", "# TODO: later\n"),
    (tidy.every_todo_has_an_issue, "Makefile", "# FIXME(me) later\n"),
    (tidy.stateful_classes_are_small, "src/a.py", stateful(9, 1)),
    (tidy.stateful_classes_are_small, "src/a.py", stateful(1, 11)),
    (tidy.stateful_classes_are_small, "src/a.py", fields(9, "@dataclass")),
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
    (tidy.functions_are_short, "bench/a.py", function(70)),
    (tidy.files_are_short, "bench/a.py", "x = 1\n" * 501),
    (tidy.every_todo_has_an_issue, "bench/a.py", "# TODO(#12): later\n"),
    (tidy.stateful_classes_are_small, "src/a.py", stateful(8, 10)),
    (tidy.stateful_classes_are_small, "src/a.py", fields(9, "@dataclass(frozen=True)")),
    (tidy.room_inits_hold_only_a_docstring, "src/evertide/sql/__init__.py", '"""A."""\n'),
    (tidy.no_machine_is_named, "docs/a.md", "src/work/a, /tmp, https://www.postgresql.org/root\n"),
    (tidy.names_are_telling, "src/evertide/sql/utility.py", ""),
    (tidy.constraints_are_plain_pins, "constraints.txt", "# why\na-b.c==1.0.post1\n"),
]


def plant(root: Path, path: str, text: str) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.mark.parametrize(("rule", "path", "text"), BROKEN)
def test_a_planted_violation_is_found(tmp_path: Path, rule: Rule, path: str, text: str) -> None:
    plant(tmp_path, path, text)
    assert [violation.path for violation in violations(tmp_path, rule)] == [path]


@pytest.mark.parametrize(("rule", "path", "text"), SOUND)
def test_what_is_just_within_the_limit_passes(
    tmp_path: Path, rule: Rule, path: str, text: str
) -> None:
    plant(tmp_path, path, text)
    assert not violations(tmp_path, rule)


def test_every_rule_has_a_planted_violation() -> None:
    assert {rule for rule, _, _ in BROKEN} == set(tidy.RULES)
