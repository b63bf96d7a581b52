"""The nodes of a delta plan as Python: one file per kind of state.

An operator's `step` turns its inputs' deltas of one tick into its own and changes nothing that
outlives the tick; `commit` then takes the tick's changes into its state, `abort` forgets them. All
operators step before any commits, so "old" state is what every one of them sees.
"""
