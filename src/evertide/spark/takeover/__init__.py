"""How a view changes hands: a staged definition is compared with the running one, then takes its
shard over (docs/adr/2026-11-16-how-a-view-changes-hands.md).

`difference.py` keeps what the two differ in; `choice.py` says, purely, at which timestamp the new
one begins; `phases.py` and `sink.py` are the life of a sink that is not yet allowed to write;
`moves.py` carries it through that life, one worker round at a time.
"""
