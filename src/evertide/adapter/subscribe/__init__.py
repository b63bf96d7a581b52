"""SUBSCRIBE, in order of control flow.

start chooses where to begin; changes come from sources over feed (stored collections), from cluster
(queries) or from catalog (system relations); stream hands them to the client as rows words them;
subscriptions ends them when what they read is dropped.
"""
