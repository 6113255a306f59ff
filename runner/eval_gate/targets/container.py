"""Reaching the job's host from inside a container, where `localhost` is the container itself."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from pathlib import Path

HOST_NAME = "host.docker.internal"
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104 (names to recognise, not to bind)
HINT = (
    "inside a container localhost is the container itself: use http://host.docker.internal:PORT for a process on the"
    " machine, which must listen on 0.0.0.0, or the service's name for a service container"
)


@dataclass(frozen=True, slots=True)
class System:
    """The files that tell whether this is a container and where its gateway is."""

    marks: tuple[Path, ...] = (Path("/.dockerenv"), Path("/run/.containerenv"))
    route: Path = Path("/proc/net/route")

    def in_container(self) -> bool:
        """Whether this process runs inside Docker or Podman."""
        return any(mark.exists() for mark in self.marks)

    def gateway(self) -> str | None:
        """The address of the machine that the container runs on; None when unknown."""
        try:
            return default_gateway(self.route.read_text(encoding="ascii"))
        except OSError:
            return None


def default_gateway(route_table: str) -> str | None:
    """The default gateway in the text of `/proc/net/route`: addresses in hexadecimal, little-endian."""
    for line in route_table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 2 and fields[1] == "00000000" and fields[2] != "00000000":
            return socket.inet_ntoa(struct.pack("<L", int(fields[2], 16)))
    return None


def reachable_host(host: str, system: System) -> str:
    """The host to connect to: `host.docker.internal` does not resolve on Linux, the gateway is what is meant."""
    if host != HOST_NAME or not system.in_container():
        return host
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return system.gateway() or host
    return host


def connection_hint(host: str, system: System) -> str | None:
    """What to do about a refused connection to this host."""
    return HINT if host in LOCAL_NAMES and system.in_container() else None
