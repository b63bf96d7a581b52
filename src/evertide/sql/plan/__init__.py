"""Statements to plans, one file per statement family.

`plans` holds what comes out; `entry` the one function that others call.
"""
