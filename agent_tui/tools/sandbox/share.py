"""Makes a network that has nothing but a loopback, and hands it over for others to join, with a socket that
listens there.

Standard library only, loaded by itself in an isolated interpreter, as a process that made a user namespace must have
one thread. The namespaces live as long as anybody has them open: nothing runs to keep them.
"""

import os
import socket
import sys

import confine  # type: ignore[import-not-found]


def main() -> None:
    spec = confine.unpacked(sys.argv[1])
    try:
        inside = confine.own_network()
        names = ("user", "net") if inside else ("net",)
        fds = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in names]
        # A socket stays in the network it was made in, whoever has it.
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
    except OSError as error:
        os.write(2, f"{error}\n".encode())
        os._exit(1)
    with socket.socket(fileno=spec["to"]) as to:
        socket.send_fds(to, [b"n"], [listener.fileno(), *fds])
