"""Tables and views that one session has for itself.

Promises that they are seen by nobody else, are gone with the session however that ends, and leave
nothing in any store: they are kept in this process alone, in bounded memory. The session puts them
over every snapshot that it plans with (objects), so that names, rights, dependencies and system
relations come to know of them by the ways they know of everything else. parts divides what a
statement changes in what is stored and what is the session's; naming follows renamed relations in
the texts of views; tables keeps rows; blocks tells which statements may stand in a transaction.
"""
