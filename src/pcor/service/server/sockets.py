"""Listening: the sockets that the service accepts connections from, taken before anything else.

Public: everything here. A port that cannot be had is said in a sentence, before the books are
opened and before anybody is told that the service is there.
"""

from __future__ import annotations

import errno
import socket

from pcor.errors import ParameterError

# Connections that the system keeps for us until they are accepted. The event loop accepts up to so
# many in one go, before any of them can be refused: so it is a part of what files are needed for.
BACKLOG = 128

_REASONS = {
    errno.EADDRINUSE: (
        "port {port} at {host} is taken: another program listens there, perhaps another `pcor "
        "serve`; end that one, or give another --port"
    ),
    errno.EACCES: (
        "this user may not listen at port {port}; give a --port above 1023, and put a proxy in "
        "front of it"
    ),
    errno.EADDRNOTAVAIL: "{host} is not an address of this machine; give another --host",
}


def listen(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen at all addresses that a host's name stands for.

    Who connects from now on waits until the service accepts.
    """
    try:
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError:
        raise ParameterError(
            f"{host} is not the name or the address of a machine; give another --host"
        ) from None
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            sockets.append(_listening(socket.AddressFamily(family), address))
    except OSError as error:
        for one in sockets:
            one.close()
        reason = _REASONS.get(error.errno or 0, "the service cannot listen at {host}, port {port}")
        raise ParameterError(reason.format(host=host, port=port)) from None
    return sockets


def _listening(family: socket.AddressFamily, address: tuple[object, ...]) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it. Without, an answer's last part waits 40 ms for the client's next
        # word: the event loop sets it only on sockets that it made itself.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # 0.0.0.0 has its own
        made.bind(address)
        # Now, not when the first process is ready: until somebody listens, two may bind.
        made.listen(BACKLOG)
        made.set_inheritable(True)
    except BaseException:
        made.close()
        raise
    return made
