"""Who may run what: the role of a session, what a plan takes, and the check of one by the other.

Promises that a statement runs only if the catalog snapshot that executes it allows it. Refuses to
know how anything runs. In order of control flow: identity.py, needs.py, dropping.py, changes.py,
check.py.
"""
