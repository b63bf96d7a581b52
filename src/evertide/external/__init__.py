"""What enters a cluster by itself and what leaves it: load generators and files.

Promises: a source's contents at every time follow from its definition alone, so any number of
replicas write one and the same collection. A sink's file is at every moment the beginning of one
and the same sequence of lines, whatever was killed and when. Knows nothing of SQL, and runs no
Spark. In order of control flow: runner.py starts and stops what the catalog asks for; generate.py
writes a source by schedule.py and the contents of counter.py and auction.py; write_out.py follows a
collection into lines.py and sink_file.py; status.py is what others are told.
"""
