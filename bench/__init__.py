"""Figures beside their baselines: `python -m bench` starts real servers and prints one table.

A figure is the best of three runs' medians, because machines are noisy; a baseline is something
well known, measured the same way between the same runs. `figure.py` holds that rule, `place.py`
what is started, `ready.py`, `memory.py`, `statements.py`, `joined.py` and `objects.py` are some of
the figures, and `bare_spark.py`, `recompute.py` and `opening.py` are programs that figures run in
processes of their own. `filled.py` makes an environment with many objects. The package `views` is
the figures of maintained views.
`storage_appends.py` is run by itself: what many small appends leave behind.
"""
