"""Goal: files of sinks are below DATA/sinks unless the operator names another directory."""

from pathlib import Path

from evertide.cli.main import build_parser, config_of


def directory(*flags: str) -> str | None:
    return config_of(build_parser().parse_args(["serve", *flags])).sink_dir


def test_it_is_in_the_data_directory_or_where_it_is_said(tmp_path: Path) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    assert directory("--data", str(data)) == str(data / "sinks")
    assert directory("--data", str(data), "--sink-dir", str(other)) == str(other)


def test_without_a_data_directory_there_is_none(tmp_path: Path) -> None:
    stores = ("--consensus", f"sqlite:{tmp_path}/c.db", "--blob", f"file:{tmp_path}/blob")
    assert directory(*stores) is None
    assert directory(*stores, "--sink-dir", str(tmp_path)) == str(tmp_path)


def test_a_link_is_followed_when_the_server_starts(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    assert directory("--data", str(tmp_path), "--sink-dir", str(tmp_path / "link")) == str(real)
