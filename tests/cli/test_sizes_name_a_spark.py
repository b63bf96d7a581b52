"""Goal: a size table says what each size is given; a wrong one is told before anything starts."""

import json
from pathlib import Path

import pytest

from evertide.cli.config import UsageError
from evertide.cli.main import build_parser, config_of
from evertide.cli.sizes import BadSizes, Size, read_sizes
from evertide.spark.conf import SessionSettings, session_conf


def table(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_what_is_left_out_is_local_and_small(tmp_path: Path) -> None:
    path = table(tmp_path / "sizes.json", {"small": {}, "far": {
        "master": "spark://10.0.0.5:7077", "cores": 8, "memory_mb": 4096, "partitions": 4,
        "address": "10.0.0.4", "credits_per_hour": "1.5",
    }})  # fmt: skip
    sizes = read_sizes(path)
    assert sizes["small"] == Size()
    assert (sizes["small"].master, sizes["small"].partitions) == (None, 1)
    far = sizes["far"]
    assert (far.master, far.cores, far.memory_mb) == ("spark://10.0.0.5:7077", 8, 4096)
    assert (far.partitions, far.address, str(far.credits_per_hour)) == (4, "10.0.0.4", "1.5")


def test_what_spark_shows_may_be_switched_on(tmp_path: Path) -> None:
    wanted = {"spark.ui.enabled": "true", "spark.hadoop.a": "1", "spark.eventLog.enabled": "true"}
    size = read_sizes(table(tmp_path / "sizes.json", {"x": {"conf": wanted}}))["x"]
    for bulk in (False, True):
        settings = SessionSettings(tmp_path, bulk=bulk, conf=size.conf)
        conf = session_conf(settings, "local")
        assert {name: conf[name] for name in wanted} == wanted
        assert conf["spark.driver.bindAddress"] == "127.0.0.1"


@pytest.mark.parametrize("master", ["spark://a:1", "k8s://https://b:2", "yarn", "local[4]"])
def test_any_spark_master_may_be_named(tmp_path: Path, master: str) -> None:
    assert read_sizes(table(tmp_path / "s", {"x": {"master": master}}))["x"].master == master


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("not json", "malformed"),
        ([], "Expected `object`"),
        ({"x": {"partitions": 0}}, ">= 1"),
        ({"x": {"cores": "many"}}, "Expected `int`"),
        ({"x": {"partition": 2}}, "unknown field `partition`"),
        ({"x": {"master": "10.0.0.5"}}, "not a Spark master: 10.0.0.5"),
        ({"x": {"master": "spark://a:1 --conf x=y"}}, "not a Spark master"),
        ({"x": {"conf": {"spark.sql.ansi.enabled": "false"}}}, "cannot set spark.sql.ansi.enabled"),
        ({"x": {"conf": {"spark.cores.max": "1"}}}, "cannot set spark.cores.max"),
        ({"x": {"conf": {"spark.authenticate.secret": "s"}}}, "spark.authenticate.secret"),
        ({"x": {"conf": {"java.home": "/"}}}, "cannot set java.home"),
        ({"x": {"conf": {"spark.sql.adaptive.enabled": "no"}}}, "spark.sql.adaptive.enabled"),
    ],
)
def test_a_table_that_cannot_be_is_refused(tmp_path: Path, content: object, said: str) -> None:
    with pytest.raises(BadSizes, match=r"sizes\.json") as refused:
        read_sizes(table(tmp_path / "sizes.json", content))
    assert said in str(refused.value)


def test_the_table_and_its_secrets_are_looked_at_when_the_server_starts(tmp_path: Path) -> None:
    missing = {"x": {"master": "spark://a:1", "secret_file": str(tmp_path / "none")}}
    path = table(tmp_path / "sizes.json", missing)
    arguments = ["serve", "--data", str(tmp_path), "--sizes", str(path)]
    with pytest.raises(UsageError, match="secret_file of x is not a file"):
        config_of(build_parser().parse_args(arguments))
    (tmp_path / "none").write_text("secret")
    assert config_of(build_parser().parse_args(arguments)).sizes["x"].master == "spark://a:1"
    with pytest.raises(UsageError, match="cannot be read"):
        config_of(build_parser().parse_args([*arguments[:-1], str(tmp_path / "nowhere")]))
