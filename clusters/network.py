"""The interface on which a cluster listens: the loopback interface, unless the user names another one.

Whoever can connect to a scheduler or a worker of Dask can run programs as its user, since Dask sends tasks as pickles.
TLS (`distributed.Security`) admits only those who hold a certificate. The dashboard has no such check.
"""

from __future__ import annotations

import ipaddress
import warnings
from typing import Any

from distributed import Security, Worker
from distributed.comm.addressing import get_address_host

LOOPBACK = "127.0.0.1"
DASHBOARD_PORT = 8787


class LoopbackWorker(Worker):
    """A worker in this process, whose health pages are on loopback; Dask's default serves them to the network."""

    def __init__(self, *args: Any, dashboard_address: str | None = None, **options: Any):
        super().__init__(*args, dashboard_address=dashboard_address or f"{LOOPBACK}:0", **options)


def http_address(dashboard: bool | str) -> str:
    """Return where the scheduler serves its pages: at the address `dashboard`, by default on the loopback interface.

    >>> http_address(True), http_address(":8788"), http_address("0.0.0.0:8787"), http_address(False)
    ('127.0.0.1:8787', '127.0.0.1:8788', '0.0.0.0:8787', '127.0.0.1:0')
    """
    if isinstance(dashboard, str) and dashboard:
        return LOOPBACK + dashboard if dashboard.startswith(":") else dashboard
    return f"{LOOPBACK}:{DASHBOARD_PORT if dashboard else 0}"


def warn_if_open(dashboard: bool | str, options: dict[str, Any], stacklevel: int) -> None:
    """Warn if options of `start` open the cluster or its dashboard to the network."""
    if not _encrypted(options.get("security")):
        for name in ("host", "interface"):
            value = options.get(name)
            if value and not (value == "lo" if name == "interface" else _is_loopback(str(value))):
                warnings.warn(
                    f"{name}={value!r}: whoever reaches this address can run programs as you; pass security= to admit "
                    f"only holders of a certificate (TLS, see docs/clusters.md), or leave {name} out",
                    stacklevel=stacklevel + 1,
                )
    if not _is_loopback(http_address(dashboard)):
        warnings.warn(
            f"dashboard={dashboard!r}: whoever reaches this address sees the run; leave out the host, as in ':8787', "
            "to serve this machine alone",
            stacklevel=stacklevel + 1,
        )


def has_certificate(security: Security | None) -> bool:
    """Return whether a client with this `security`, by default Dask's configuration, can connect by TLS."""
    return (security or Security()).get_connection_args("client").get("ssl_context") is not None


def _encrypted(security: Any) -> bool:
    return security is True or bool((security or Security()).require_encryption)


def _is_loopback(address: str) -> bool:
    try:
        host = get_address_host(address if "://" in address else f"tcp://{address}")
    except ValueError:  # a host without a port may contain colons
        host = address
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
