"""Addresses of agents: whether two of them lead to the same one, however they are spelt."""

from __future__ import annotations

import ipaddress
import posixpath
import socket
from typing import Final
from urllib.parse import unquote, urlsplit

from eval_gate.struct import FrozenStruct
from eval_gate.targets.container import ContainerProbe, is_local_host

_PORTS: Final = {"http": 80, "https": 443}


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
    return AgentAddress(host, parts.port or _PORTS[parts.scheme], path)


def is_this_machine(host: str, system: ContainerProbe) -> bool:
    """Whether a host is this machine or, in a container, the machine that the container runs on."""
    names = {socket.gethostname().lower(), socket.getfqdn().lower()}
    if is_local_host(host) or host.endswith(".localhost") or host in names:
        return True
    if system.is_container() and host == system.find_gateway():
        return True
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):  # a name that nobody knows here, or that only a proxy knows
        return False
    return any(_is_own_address(family, str(address[0])) for family, _, _, _, address in found)


def _is_own_address(family: socket.AddressFamily, host: str) -> bool:
    """Whether a numeric address is one of this machine: nobody can listen on the address of another one."""
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
