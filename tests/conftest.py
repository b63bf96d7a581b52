"""What every test may use, and the order tests run in. A room's own fixtures live in its folder."""

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from xdist.workermanage import WorkerController

from tests.support import progress, seeds
from tests.support.postgres import running_postgres
from tests.support.s3 import running_s3
from tests.support.schedule import pytest_xdist_make_scheduler  # noqa: F401 - a hook
from tests.support.server import Server, running_server
from tests.support.surroundings import FOREIGN, Surroundings

TESTS = Path(__file__).parent
# What a shadow catalog says when its copies differ.
DIFFERENCE = "the two catalogs of the shadow differ"

# A folder of costly tests marks all of its files.
FOLDER_MARKERS = {
    "spark": "spark",
    "wire": "wire",
    "process": "wire",
    "golden": "wire",
    "views": "spark",
}

# Where every tick is a job of Spark's, a test takes a minute and more, several if much else runs.
JOBS_TIMEOUT_S = 900


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-golden", action="store_true", help="rewrite golden files")
    seeds.add_options(parser)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    surroundings = Surroundings()
    surroundings.enter()
    config.add_cleanup(surroundings.leave)
    seeds.choose(config)
    progress.begin(config)


def pytest_report_header(config: pytest.Config) -> list[str]:
    return seeds.header(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    seeds.tell_worker(node)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    seeds.parametrize(metafunc)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return seeds.with_replay(item, (yield))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Cheapest first: a broken unit is reported before Spark has even started."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in FOLDER_MARKERS:
            item.add_marker(FOLDER_MARKERS[folder])
        if folder == "views" and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(JOBS_TIMEOUT_S))
    items.sort(key=_cost)


def _cost(item: pytest.Item) -> int:
    if item.get_closest_marker("spark"):
        return 2
    return 1 if item.get_closest_marker("wire") else 0


@pytest.fixture(scope="session")
def rewrite_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite-golden"))


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """One PostgreSQL 16 per run; a test that needs a clean one creates its own database."""
    with running_postgres() as dsn:
        yield dsn


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """One S3-compatible object store per run; each test makes a bucket of its own."""
    with running_s3() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server per run for tests that do not kill it; each uses names of its own.

    Its catalog is kept twice, and every reading of one copy is compared with the other: all SQL
    that tests run over it shows that both mean the same. Its surroundings are not the clients':
    nor may an answer depend on those.
    """
    data = tmp_path_factory.mktemp("server") / "data"
    with running_server(data, ["--catalog", "shadow"], surroundings=FOREIGN) as running:
        yield running
        assert running.process.poll() is None, "a server that found a difference ends"
        assert DIFFERENCE not in running.log_text()
