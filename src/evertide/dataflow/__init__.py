"""What to run, as data.

Promises pure functions from optimised expressions to dataflow descriptions and delta plans, and
the commands and responses that a replica understands. Refuses to know how any of it is executed.
Files in order of use: description, build, delta_plan, delta, told_at_once, plan_codec, protocol,
channel, listening.
"""
