"""Goal: no process of the tree can be reached from another machine.

Method: every listening TCP socket of every process of the server must be bound to loopback.
"""

from pathlib import Path

from tests.support.server import Server

LOOPBACK = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
LISTEN = "0A"


def _socket_inodes(pid: int) -> set[str]:
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:
            continue  # closed meanwhile
        if target.startswith("socket:["):
            found.add(target[8:-1])
    return found


def _listening(pid: int) -> list[str]:
    """Local addresses of the process's listening TCP sockets, as /proc spells them.

    A process that ended meanwhile, a Spark worker say, listens to nothing.
    """
    try:
        return _addresses(pid, _socket_inodes(pid))
    except (FileNotFoundError, ProcessLookupError):
        return []


def _addresses(pid: int, own: set[str]) -> list[str]:
    addresses = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTEN and fields[9] in own:
                addresses.append(fields[1].split(":")[0])
    return addresses


def test_every_listening_socket_is_on_loopback(server: Server) -> None:
    addresses = [a for pid in server.descendants() for a in _listening(pid)]
    assert len(addresses) >= 3, "SQL, internal SQL and HTTP at least"
    assert [a for a in addresses if a not in LOOPBACK] == []


def test_the_data_directory_is_private(server: Server) -> None:
    assert server.data.stat().st_mode & 0o077 == 0 or server.data.parent.stat().st_mode & 0o077 == 0
    database = server.data / "consensus.db"
    assert database.stat().st_mode & 0o077 == 0
