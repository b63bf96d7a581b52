"""The PostgreSQL wire protocol, and HTTP for health and metrics.

Promises that any PostgreSQL client may connect, that what a client sends can neither stop the
process nor reach another client's session, and that a slow reader costs one chunk of memory, not
a whole answer. Refuses to know SQL, timestamps and storage: it sees sessions through
adapter/client.py and text formats through expr/text_input.py and expr/text_output.py.

Files in order of control flow. server listens and backends counts who is connected. connection
owns one client: channel is its transport, inbox queues what codec makes of its bytes (messages).
For each message connection drives machine, which decides alone: startup checks who begins,
authentication and scram have it prove who it is (attempts says how often it may try), portals keeps
names, copy_in takes COPY's rows, requests says what has to be awaited, replies is what clients are
told. values turns rows and parameters to bytes and back with binary, range_format and numeric,
row_columns many rows at once. short_way stands before inbox and answers prepared statements that
look a key up. http and metrics stand beside.
"""
