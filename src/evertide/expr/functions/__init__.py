"""The function table: one row per function, its types, Python body and Spark lowering side by side.

`row` says what a row is, `build` and `type_groups` help to write many of them. One file per family
holds rows: comparison, boolean, integer, floating, numeric, width_bucket, text, text_format,
identifiers, pattern, regex, encoding, binary, hashes, datetime_arithmetic, datetime_fields,
datetime_functions, to_char, jsonb, jsonb_change, array, array_change and lists (with members),
ranges, catalog, internal. Rows that there is no end of are made when they are needed: `record`
makes those of rows as values, `made` and `made_aggregate` those of lists of lists, maps (`maps`)
and arrays of rows, `each_element` those of ANY and ALL. rows holds table functions, rows_in_step
several of them side by side; conversion, text_conversion, jsonb_conversion and type_modifiers hold
those that casts are made of, aggregate and statistics the aggregates, session the values a
statement starts with. `cast` says which casts there are and how freely they may be inserted,
`table` finds rows by name, `category` and `resolution` find the row that a call means. `procedures`
is the table as clients see it.
"""
