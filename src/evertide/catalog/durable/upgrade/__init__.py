"""Frozen stored versions: encoded examples of each, and the steps from one to the next.

A step works on plain values and imports nothing of today's objects: those move on, old rows do not.
Each version_N.json holds rows as version N wrote them; tests decode or upgrade all of them.
"""
