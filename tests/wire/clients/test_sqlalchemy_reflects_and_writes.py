"""Goal: SQLAlchemy finds what there is, and tables it describes can be written and read."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from tests.support.server import Server

DEFINITIONS = (
    "CREATE TABLE reflected (id int NOT NULL, name varchar(20), at timestamptz, n numeric(10,2),"
    " tags text[], j jsonb, u uuid, f float8 DEFAULT 1.5)",
    "CREATE VIEW reflected_view AS SELECT id, name FROM reflected",
    "CREATE MATERIALIZED VIEW reflected_mv AS SELECT id, count(*) AS c FROM reflected GROUP BY id",
    "CREATE INDEX reflected_by_name ON reflected (name, id)",
    "COMMENT ON TABLE reflected IS 'a table'",
    "COMMENT ON COLUMN reflected.id IS 'a column'",
)


@pytest.fixture(scope="module")
def autocommit(server: Server) -> Iterator[sa.Engine]:
    """Definitions commit by themselves, so they need an engine that begins no transactions."""
    url = server.dsn().replace("postgresql://", "postgresql+psycopg://")
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for definition in DEFINITIONS:
            connection.execute(sa.text(definition))
    yield engine
    with engine.connect() as connection:
        connection.execute(sa.text("DROP TABLE reflected CASCADE"))
    engine.dispose()


@pytest.fixture(scope="module")
def engine(autocommit: sa.Engine) -> Iterator[sa.Engine]:
    made = sa.create_engine(autocommit.url)
    yield made
    made.dispose()


@pytest.fixture
def inspector(engine: sa.Engine) -> sa.Inspector:
    return sa.inspect(engine)


def test_relations_are_listed_by_kind(inspector: sa.Inspector) -> None:
    assert "public" in inspector.get_schema_names()
    assert "reflected" in inspector.get_table_names()
    assert "reflected_view" in inspector.get_view_names()
    assert "reflected_view" not in inspector.get_table_names()
    assert "SELECT id, name" in inspector.get_view_definition("reflected_view")
    assert inspector.has_table("reflected")
    assert not inspector.has_table("nowhere")


def test_columns_have_their_types(inspector: sa.Inspector) -> None:
    columns = {column["name"]: column for column in inspector.get_columns("reflected")}
    assert {name: str(column["type"]) for name, column in columns.items()} == {
        "id": "INTEGER", "name": "VARCHAR(20)", "at": "TIMESTAMP", "n": "NUMERIC(10, 2)",
        "tags": "ARRAY", "j": "JSONB", "u": "UUID", "f": "DOUBLE PRECISION",
    }  # fmt: skip
    assert [name for name, column in columns.items() if not column["nullable"]] == ["id"]
    assert columns["id"]["comment"] == "a column"
    assert str(columns["f"]["default"]).startswith("1.5")
    assert [c["name"] for c in inspector.get_columns("reflected_mv")] == ["id", "c"]
    assert inspector.get_table_comment("reflected") == {"text": "a table"}


def test_indexes_and_constraints_are_told(inspector: sa.Inspector) -> None:
    (index,) = inspector.get_indexes("reflected")
    assert (index["name"], index["column_names"], index["unique"]) == (
        "reflected_by_name",
        ["name", "id"],
        False,
    )
    assert inspector.get_pk_constraint("reflected")["constrained_columns"] == []
    assert inspector.get_foreign_keys("reflected") == []
    assert inspector.get_unique_constraints("reflected") == []
    assert inspector.get_check_constraints("reflected") == []


def test_everything_is_reflected_at_once(engine: sa.Engine) -> None:
    metadata = sa.MetaData()
    metadata.reflect(engine, views=True, only=lambda name, _: name.startswith("reflected"))
    assert set(metadata.tables) >= {"reflected", "reflected_view"}
    table = metadata.tables["reflected"]
    assert [index.name for index in table.indexes] == ["reflected_by_name"]


def test_a_table_is_made_written_and_read(engine: sa.Engine, autocommit: sa.Engine) -> None:
    metadata = sa.MetaData()
    table = sa.Table(
        "made_by_core", metadata, sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String), sa.Column("at", sa.DateTime(timezone=True)),
    )  # fmt: skip
    metadata.create_all(autocommit)
    try:
        with engine.begin() as connection:
            connection.execute(table.insert(), [{"id": n, "name": f"n{n}"} for n in range(3)])
        with engine.begin() as connection:
            connection.execute(table.update().where(table.c.id == 1).values(name="changed"))
        with engine.begin() as connection:
            connection.execute(table.delete().where(table.c.id == 2))
        with engine.connect() as connection:
            rows = connection.execute(sa.select(table.c.id, table.c.name).order_by("id")).all()
        assert [tuple(row) for row in rows] == [(0, "n0"), (1, "changed")]
    finally:
        metadata.drop_all(autocommit)


class Base(DeclarativeBase):
    """Of the mapped class below."""


class Kept(Base):
    __tablename__ = "made_by_orm"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    text: Mapped[str]


def test_objects_are_kept(engine: sa.Engine, autocommit: sa.Engine) -> None:
    with autocommit.connect() as connection:
        connection.execute(sa.text("CREATE TABLE made_by_orm (id int NOT NULL, text text)"))
    try:
        with Session(engine) as session:
            session.add(Kept(id=1, text="one"))
            session.commit()
        with Session(engine) as session:
            found = session.get(Kept, 1)
            assert found is not None
            assert found.text == "one"
    finally:
        with autocommit.connect() as connection:
            connection.execute(sa.text("DROP TABLE made_by_orm"))


def test_a_part_of_a_transaction_is_taken_back(engine: sa.Engine, autocommit: sa.Engine) -> None:
    with autocommit.connect() as connection:
        connection.execute(sa.text("CREATE TABLE half_written (a int)"))
    try:
        with engine.begin() as connection:
            connection.execute(sa.text("INSERT INTO half_written VALUES (1)"))
            part = connection.begin_nested()
            connection.execute(sa.text("INSERT INTO half_written VALUES (2)"))
            part.rollback()
            with connection.begin_nested():
                connection.execute(sa.text("INSERT INTO half_written VALUES (3)"))
        with engine.connect() as connection:
            rows = connection.execute(sa.text("SELECT a FROM half_written ORDER BY a")).all()
        assert [row[0] for row in rows] == [1, 3]
    finally:
        with autocommit.connect() as connection:
            connection.execute(sa.text("DROP TABLE half_written"))
