"""Lists of lists, maps and arrays of rows: what makes them, what is in them, their text."""

import pytest

from evertide.expr.functions.table import by_signature
from evertide.expr.scalar import Call, Scalar
from evertide.expr.scalar_walk import children
from evertide.expr.text_output import format_text
from evertide.expr.transform.passes import optimize
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.errors import SqlError
from tests.expr.own_answers import column_of
from tests.sql.database import Database, new_database

VALUES: dict[str, str | None] = {
    "LIST[LIST[1, 2], LIST[3], NULL]": "{{1,2},{3},NULL}",
    "LIST[LIST['a b', 'NULL'], LIST['{}']]": '{{"a b","NULL"},{"{}"}}',
    "'{{1}, {2, NULL}, NULL}'::int list list": "{{1},{2,NULL},NULL}",
    "'{{1}}'::int list list::text list list": "{{1}}",
    "LIST[LIST[1, 2], LIST[3]][1][2]": "2",
    "LIST[LIST[1, 2], LIST[3]][1:1]": "{{1,2}}",
    "LIST[1, 2][3]": None,
    "LIST[LIST[1]] || LIST[2]": "{{1},{2}}",
    "LIST[1] || LIST[2]": "{1,2}",
    "NULL::int list || 1": "{1}",
    "list_append(LIST[LIST[1]], NULL)": "{{1},NULL}",
    "list_prepend(0, LIST[1])": "{0,1}",
    "list_cat(LIST[LIST[1]], NULL)": "{{1}}",
    "list_remove(LIST[LIST[1], LIST[2], NULL], LIST[1])": "{{2},NULL}",
    "list_length(LIST[LIST[1], NULL])": "2",
    "list_length_max(LIST[LIST[1], LIST[1, 2, 3]], 2)": "3",
    "list_n_layers(LIST[LIST[LIST[1]]])": "3",
    "LIST[LIST[1], LIST[2]] @> LIST[LIST[2]]": "t",
    "LIST[1] <@ LIST[2]": "f",
    "LIST[1.0] = LIST[1.00]": "t",
    "LIST[LIST[1]] < LIST[LIST[1, 0]]": "t",
    "LIST[1] = ANY (LIST[LIST[2], NULL])": None,
    "ARRAY[1, 2]::bigint list": "{1,2}",
    "to_jsonb(LIST[LIST[1, NULL]])": "[[1,null]]",
    "MAP['b' => 1, 'a' => NULL, 'b' => 2]": "{a=>NULL,b=>2}",
    "MAP['a b' => 'x,y', 'c' => 'NULL']": '{"a b"=>"x,y",c=>"NULL"}',
    "MAP['a' => MAP['b' => LIST[1]]]": "{a=>{b=>{1}}}",
    "'{a => {b => 1}, \"c d\" => NULL}'::map[text=>map[text=>int]]": '{a=>{b=>1},"c d"=>NULL}',
    "LIST[MAP['a' => 1], NULL]": "{{a=>1},NULL}",
    "MAP[]::map[text=>int]": "{}",
    "MAP['a' => 1] -> 'a'": "1",
    "MAP['a' => 1] -> 'b'": None,
    "MAP['a' => NULL::int] ? 'a'": "t",
    "MAP['a' => 1, 'b' => 2] ?& ARRAY['a', 'c']": "f",
    "MAP['a' => 1, 'b' => 2] ?| ARRAY['a', 'c']": "t",
    "MAP['a' => 1, 'b' => 2] @> MAP['b' => 2]": "t",
    "MAP['a' => 1] <@ MAP['a' => 2]": "f",
    "map_length(MAP['a' => 1, 'b' => 2])": "2",
    "MAP['a' => 1]::map[text=>text]": "{a=>1}",
    "MAP['a' => 1.0] = MAP['a' => 1.00]": "t",
    "to_jsonb(MAP['b' => 1, 'a' => NULL])": '{"a":null,"b":1}',
    "ARRAY[(1, 'a'), (2, NULL)]": '{"(1,a)","(2,)"}',
    "ARRAY[(1, 2), (3, 4)][2]": "(3,4)",
    "array_length(ARRAY[(1, 2)], 1)": "1",
    "ARRAY[(1, 2)] = ARRAY[(1, 2)]": "t",
    "to_jsonb(ARRAY[(1, 'x')])": '[{"f1":1,"f2":"x"}]',
    "(SELECT list_agg(v) FROM (VALUES (LIST[2]), (LIST[1]), (NULL)) t (v))": "{{1},{2},NULL}",
    "(SELECT map_agg(k, v) FROM (VALUES ('b', 1), ('a', NULL)) t (k, v))": "{a=>NULL,b=>1}",
    "(SELECT max(v) FROM (VALUES (LIST[LIST[2]]), (LIST[LIST[10]])) t (v))": "{{10}}",
    "(SELECT count(v) FROM (VALUES (MAP['a' => 1]), (NULL)) t (v))": "1",
    "(SELECT array_agg(t ORDER BY k) FROM (VALUES (1, 'x')) t (k, v))": '{"(1,x)"}',
}
REFUSED = {
    "'{{1}}'::int list": "22P02",
    "'{1}'::int list list": "22P02",
    "'{{1}'::int list list": "22P02",
    "'{a=>}'::map[text=>int]": "22P02",
    "'{a=>{1}}'::map[text=>int]": "22P02",
    "MAP[NULL => 1]": "22004",
    "MAP[]": "42P18",
    "list_length_max(LIST[1], 2)": "22023",
    "ARRAY[LIST[1]]": "0A000",
    "MAP['a' => 1]::int list": "42846",
}


@pytest.fixture(scope="module")
def database() -> Database:
    return new_database()


@pytest.mark.parametrize(("expression", "expected"), VALUES.items())
def test_value(expression: str, expected: str | None, database: Database) -> None:
    plan = database.plan(f"SELECT {expression}")
    assert isinstance(plan, SelectPlan)
    ((found,),) = database.query(f"SELECT {expression}")
    assert (None if found is None else format_text(plan.desc.types[0], found)) == expected


@pytest.mark.parametrize(("expression", "code"), REFUSED.items())
def test_refusal(expression: str, code: str, database: Database) -> None:
    with pytest.raises(SqlError) as refusal:
        database.query(f"SELECT {expression}")
    assert refusal.value.code == code


def test_maps_and_lists_of_lists_give_rows(database: Database) -> None:
    pairs = database.query("SELECT key, value FROM unnest(MAP['b' => 1, 'a' => NULL])")
    assert pairs == [("a", None), ("b", 1)]
    assert database.query("SELECT unnest(LIST[LIST[1], NULL])") == [((1,),), (None,)]


def test_their_functions_are_found_again_by_signature(database: Database) -> None:
    """A plan travels to replicas by its functions' signatures."""
    database.run("CREATE TABLE held (l int list list, m map[text=>int list], n numeric)")
    for expression in (
        "l || LIST[1]", "l[1]", "m -> 'k'", "l = l", "l::text", "l::bigint list list",
        "m::text", "to_jsonb(m)", "list_length_max(l, 1)", "MAP['a' => n]", "LIST[l]",
    ):  # fmt: skip
        plan = database.plan(f"SELECT {expression} FROM held")
        assert isinstance(plan, SelectPlan)
        project = plan.finishing.project
        scalar = column_of(optimize(plan.relation), 0 if project is None else project[0])
        calls = _calls(scalar)
        assert calls, expression
        assert all(by_signature(call.function.signature) is call.function for call in calls)


def _calls(scalar: Scalar) -> list[Call]:
    own = [scalar] if isinstance(scalar, Call) else []
    return own + [call for part in children(scalar) for call in _calls(part)]
