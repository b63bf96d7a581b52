"""Statements to plans: names looked up, types settled, every query one typed tree.

Promises a plan that needs no text any more, or an error with a code and a place. Runs nothing and
changes nothing. In the order of a SELECT:

entry, context     the one function that others call; what it knows of session and statement
plans              what comes out
read               SELECT, COPY TO, EXPLAIN, DECLARE; as_of, limit
query              WITH, set_operation, values; planned is what it gives
select             from_clause, source, join, table_function; where; grouping; output, naming
expression         one match over all nodes: literal, operator, predicate, structure, call,
                   quantified, row; expression_context is what they see
scope, place       columns that names may mean; where an error points
deferred, subquery aggregates and subqueries, attached to the relation after the expression is known
builder            the relation under construction; difference, cardinality, rewrite
coercion           function_call, data_type, registered, parameters, origin: types and overloads
insert, mutation   target, assignment: writes; copy_from: rows that follow
literal_json       literal_rows, literal_list: long lists of constants, by columns
define, index      container, drop, rename: definitions
undrop             what was dropped, brought back; names_of_today: kept texts in today's names
clusters           clusters, replicas, profiles, and which of them can answer
roles              who may do what; roles.rights says what a statement takes
external           sources and sinks
show, show_create  lists of objects as queries over system relations; new_name: names to be given
session            variables, transactions, prepared statements
"""
