"""The PostgreSQL wire protocol, and HTTP for health and metrics.

Promises that any PostgreSQL client may connect, that what a client sends can neither stop the
process nor reach another client's session, and that a slow reader costs one chunk of memory, not
a whole answer. Refuses to know SQL, timestamps and storage: it sees sessions through
adapter/client.py and text formats through expr/text_input.py and expr/text_output.py.

Files in order of control flow: server (sockets, limits, cancel requests) gives bytes to inbox,
which lets codec make messages of them; connection drives machine with each message and performs
the requests that machine makes. machine answers with replies, keeps names in portals, and lets
values and binary turn datums to bytes and back. http and metrics stand beside all that.
"""
