"""Random recursions over the tables of trees.py."""

from random import Random

from evertide.expr.relation import (
    Distinct,
    Get,
    LetRec,
    LocalGet,
    Map,
    Project,
    RecursionLimit,
    Relation,
    TopK,
    Types,
    Union,
)
from evertide.expr.relation_walk import rewrite_up
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import INT8
from tests.expr.sample import lit
from tests.expr.trees import TABLES, Trees

READ = GlobalId("t2")  # the table in whose place bindings are read
SHAPE: Types = TABLES[READ]
MOST_ITERATIONS = 5


def random_recursion(rng: Random, trees: Trees, depth: int, *, number: int = 0) -> LetRec:
    """Bindings that read one another, under a limit that some reach; now and then one in another.

    Rows are kept few: a relation that multiplies what it reads would soon fill the machine.
    """
    names = tuple(f"r{i}#{number}" for i in range(rng.choice([1, 1, 2])))
    values = tuple(
        _bounded(rng, _shaped(_reading(rng, trees.relation(depth), names, always=True)))
        for _ in names
    )
    if number == 0 and rng.random() < 0.2:
        inner = random_recursion(rng, trees, 1, number=1)
        nested = _bounded(rng, _shaped(_reading(rng, inner, names)))
        values = (_bounded(rng, Union((values[0], nested))), *values[1:])
    body = _reading(rng, trees.relation(1), names, always=True)
    limit = RecursionLimit(rng.randrange(1, MOST_ITERATIONS), fails=rng.random() < 0.1)
    return LetRec(names, values, body, limit)


def _reading(
    rng: Random, relation: Relation, names: tuple[str, ...], *, always: bool = False
) -> Relation:
    """The relation with bindings in the place of some tables; joined to one if there is none."""
    read: set[str] = set()

    def replaced(node: Relation) -> Relation:
        if not isinstance(node, Get) or node.types != SHAPE or rng.random() < 0.2:
            return node
        name = rng.choice(names)
        read.add(name)
        return LocalGet(name, SHAPE)

    found = rewrite_up(relation, replaced)
    if always and not read:
        return Union((_shaped(found), LocalGet(rng.choice(names), SHAPE)))
    return found


def _shaped(relation: Relation) -> Relation:
    """Two columns of integers, whatever there was."""
    integers = [i for i, sql_type in enumerate(relation.types) if sql_type == INT8]
    width = len(relation.types)
    padded = Map(relation, (lit(1), lit(2)))
    return Project(padded, (*integers, width, width + 1)[:2])


def _bounded(rng: Random, relation: Relation) -> Relation:
    if rng.random() < 0.5:
        return TopK(Distinct(relation), (), (), limit=8)
    return TopK(relation, (), (), limit=12)
