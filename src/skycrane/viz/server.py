"""Starting viser quietly, on the loopback interface, and without its ways out to the network."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import viser

LOOPBACK = "127.0.0.1"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server bound to `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def start_server(host: str = LOOPBACK, port: int | None = None, *, label: str | None = None) -> viser.ViserServer:
    """A viser server at `host`, on `port` or else on any free port, without viser's banner.

    viser can lend its page to the internet through a tunnel when a visitor asks for a share link; that is refused.
    """
    import viser

    _check_address(host, port or 0)
    with quiet():
        server = viser.ViserServer(host=host, port=port or 0, label=label, verbose=False)
    setattr(server, "request_share_url", _refuse_share)  # noqa: B010  (a plain assignment to a method fails type checks)
    return server


def without_audience(server: viser.ViserServer) -> None:
    """Stop keeping what happens for browsers to come, which takes a third of the time of a recording; as far as this viser allows it."""
    find = getattr(getattr(server, "_websock_server", None), "get_message_buffer", None)
    buffer: Any = None if find is None else find()
    if hasattr(buffer, "push"):
        buffer.push = lambda message: None


def stop_server(server: viser.ViserServer) -> None:
    """Close the server and its threads, without viser's farewell."""
    with quiet():
        server.stop()


def port_of(server: viser.ViserServer) -> int:
    """The port that the server is bound to."""
    return int(server.get_port())


@contextmanager
def quiet() -> Iterator[None]:
    """viser prints through rich's shared console; keep that still for a moment."""
    import rich

    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


def _check_address(host: str, port: int) -> None:
    """Bind once and let go: viser itself would try a thousand ports and then wait for ever."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise OSError(f"cannot serve at {host}:{port}: {error}. Choose another port, or none for any free one") from error


def _refuse_share(verbose: bool = True) -> None:
    """Stands in for viser's share link."""
    del verbose
