"""Seven maintained views over an order book and an auction house, at two scales.

`tables.py` says what the tables are and draws their rows, `definitions.py` holds the views,
`model.py` keeps in DuckDB what every table must contain, and `changes.py` draws batches of mixed
changes and writes them as statements. `follow.py` times how long a view takes to show a batch,
`baselines.py` what recomputing costs others (`spark_recompute.py` is the program it runs), and
`control.py` a fixed piece of work that tells a slow machine from slow code. `phase.py` takes one
view through all of that, `report.py` turns it into figures, and `measure.py` is the way in.
"""
