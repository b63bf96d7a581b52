"""Where catalog objects are kept: rows of text in a log, opened under an epoch.

Files in order of control flow: place (which log an environment uses), openable (before it is open),
today (stored rows of any version as today's), catalog (the open one), transaction and targeted
(changes of it), log (what a log offers) with persist, stash, shadow and memory, meaning (rows
compared), codec and rows (objects as text), bootstrap and opening (what is written first), move and
debug (changes by hand), upgrade/ (earlier versions).
"""
