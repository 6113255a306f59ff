"""Addresses of agents: whether two lead to the same one, and how a container reaches the host of the job.

Inside a container `localhost` is the container itself.
"""

from __future__ import annotations

import ipaddress
import posixpath
import re
import socket
import struct
from pathlib import Path
from urllib.parse import unquote, urlsplit

from eval_gate.struct import FrozenStruct
from eval_gate.text.urls import PORTS

HOST_NAME = "host.docker.internal"
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104 (names to recognise, not to bind)
_LOOPBACK = re.compile(r"127(\.[0-9]{1,3}){3}")
LISTENING = "with --host 0.0.0.0: an agent on 127.0.0.1 is not reachable from a container"


class ContainerProbe(FrozenStruct):
    """Files that show whether this process runs in a container, and its gateway."""

    marker_files: tuple[Path, ...] = (Path("/.dockerenv"), Path("/run/.containerenv"))
    route_table: Path = Path("/proc/net/route")

    def is_container(self) -> bool:
        """Whether this process runs inside Docker or Podman."""
        return any(mark.exists() for mark in self.marker_files)

    def find_gateway(self) -> str | None:
        """Find the address of the machine that the container runs on. Return None if the address is unknown."""
        try:
            return parse_default_gateway(self.route_table.read_text(encoding="ascii"))
        except OSError:
            return None


def parse_default_gateway(route_table: str) -> str | None:
    """Parse the default gateway in the text of `/proc/net/route`, whose addresses are hexadecimal and little-endian."""
    for line in route_table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 2 and fields[1] == "00000000" and fields[2] != "00000000":
            return socket.inet_ntoa(struct.pack("<L", int(fields[2], 16)))
    return None


def resolve_host(host: str, system: ContainerProbe) -> str:
    """Return the host to connect to: the gateway where a container cannot resolve `host.docker.internal` (Linux)."""
    if host != HOST_NAME or not system.is_container():
        return host
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return system.find_gateway() or host
    return host


def is_local_host(host: str) -> bool:
    """Whether a host is this machine or the container's host, where a process may have started a moment ago."""
    return host in LOCAL_NAMES or host == HOST_NAME or _LOOPBACK.fullmatch(host) is not None


def find_connection_hint(url: str, setting_place: str | None, system: ContainerProbe) -> str | None:
    """Find the hint for an address at which nothing listens. `setting_place` is where the address is set."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    where = f" ({setting_place})" if setting_place else ""
    if not system.is_container():
        return f"check its URL{where}" if is_local_host(host) else None
    if host == HOST_NAME:
        return f"it has to start before this step, {LISTENING}"
    if host not in LOCAL_NAMES:
        return None
    port = f":{parts.port}" if parts.port else ""
    machine_url = f"{parts.scheme}://{HOST_NAME}{port}{parts.path}"
    return (
        f"inside a container localhost is the container itself: write {machine_url} for a process on the machine"
        f"{where}, started {LISTENING}; use the name of a service container as its host"
    )


class AgentAddress(FrozenStruct):
    """The normalized host, port and path of an agent's URL."""

    host: str
    port: int
    path: str

    def is_same_host(self, other: AgentAddress) -> bool:
        """Whether both have the same host and port."""
        return (self.host, self.port) == (other.host, other.port)

    def is_same_agent(self, other: AgentAddress, system: ContainerProbe) -> bool:
        """Whether both lead to the same agent. On this machine, one port is one server, whatever its paths are."""
        if self.port != other.port:
            return False
        if self == other:
            return True
        return is_this_machine(self.host, system) and is_this_machine(other.host, system)


def parse_agent_address(url: str) -> AgentAddress:
    """Parse the URL of an agent, which is http or https and has a host."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    try:
        host = host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        host = host.lower()
    path = posixpath.normpath(f"/{unquote(parts.path).lstrip('/')}")
    return AgentAddress(host, parts.port or PORTS[parts.scheme], path)


def is_this_machine(host: str, system: ContainerProbe) -> bool:
    """Whether a host is this machine or, in a container, the machine that the container runs on."""
    names = {socket.gethostname().lower(), socket.getfqdn().lower()}
    if is_local_host(host) or host.endswith(".localhost") or host in names:
        return True
    if system.is_container() and host == system.find_gateway():
        return True
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):  # an unknown name, or one that only a proxy knows
        return False
    return any(_is_own_address(family, str(address[0])) for family, _, _, _, address in addresses)


def _is_own_address(family: socket.AddressFamily, host: str) -> bool:
    """Whether a numeric address is one of this machine: no process can listen on any other address."""
    ip = ipaddress.ip_address(host.partition("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if ip.is_loopback or ip.is_unspecified:
        return True
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True
