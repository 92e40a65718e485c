"""Who listens where: all processes of a cluster on the loopback interface, unless asked; and TLS by certificates."""

import ipaddress
import subprocess
import warnings

import dask
import psutil
import pytest
from distributed import Security

from clusters import ClusterError, join, start
from clusters.network import warn_if_open
from tilepath.cli.cluster import NAMES, _open_client

COMMAND = dict.fromkeys(NAMES) | {"device": "cpu", "timeout": 60.0, "dashboard": False}  # the options of a command


def sockets():
    """(process, address, port) of all sockets on which this process and its children listen."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    found = [(each.pid, each.net_connections(kind="inet")) for each in processes]
    return {(pid, *c.laddr) for pid, connections in found for c in connections if c.status == psutil.CONN_LISTEN}


@pytest.fixture
def new_sockets():
    before = sockets()
    return lambda: sockets() - before


def is_loopback(socket):
    return ipaddress.ip_address(socket[1]).is_loopback


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """certificate(name): a key and a certificate that openssl makes, as the arguments of `distributed.Security`."""
    folder = tmp_path_factory.mktemp("certificates")

    def certificate(name):
        key, made = folder / f"{name}.key", folder / f"{name}.pem"
        call = f"openssl req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -days 2 -subj /CN={name}"
        subprocess.run([*call.split(), "-keyout", key, "-out", made], check=True, capture_output=True)
        files = {f"tls_{of}_{what}": str(file) for of in ROLES for what, file in (("cert", made), ("key", key))}
        return {"tls_ca_file": str(made), "require_encryption": True} | files

    return certificate


ROLES = ("scheduler", "worker", "client")


def configured(files):
    """Dask's settings of a client with a certificate."""
    tls = {"ca-file": files["tls_ca_file"]}
    tls["client"] = {"cert": files["tls_client_cert"], "key": files["tls_client_key"]}
    return dask.config.set({"distributed.comm.tls": dask.config.get("distributed.comm.tls") | tls})


class TestListening:
    @pytest.mark.parametrize("options", [{}, {"workers": 2, "protocol": "tcp"}, {"workers": 1, "processes": True}])
    def test_a_started_cluster_listens_on_loopback_alone(self, new_sockets, options):
        with start("cpu", **options) as client:
            found = new_sockets()
            assert len(found) >= 2  # the scheduler and the worker
            assert all(map(is_loopback, found)), found
            assert client.submit(abs, -2).result() == 2

    def test_the_cluster_of_a_command_listens_on_loopback_alone(self, new_sockets):
        with _open_client(COMMAND | {"workers": 2}):
            found = new_sockets()
            assert found
            assert all(map(is_loopback, found)), found

    def test_the_link_to_the_dashboard_names_the_address_that_serves_it(self):
        with start("cpu") as client:  # which serves other pages there without the dashboard
            port = client.cluster.scheduler.http_server.port
            assert client.dashboard_link == f"http://127.0.0.1:{port}/status"

    def test_a_cluster_is_opened_by_name_with_a_warning(self, new_sockets):
        with pytest.warns(UserWarning, match=r"host='0.0.0.0': whoever reaches .* security= .*TLS.* leave host out"):
            client = start("cpu", protocol="tcp", host="0.0.0.0")
        with client:
            assert not all(map(is_loopback, new_sockets()))

    @pytest.mark.parametrize(
        ("dashboard", "options", "said"),
        [
            (False, {"host": "10.0.0.1"}, "host='10.0.0.1'"),
            (False, {"host": "tcp://[::]:8786"}, "host="),
            (False, {"host": "node17"}, "host="),
            (False, {"interface": "eth0"}, "interface='eth0'"),
            ("0.0.0.0:8787", {}, "dashboard='0.0.0.0:8787': whoever .* sees the run"),
            ("0.0.0.0:8787", {"security": True}, "dashboard="),
            (True, {"host": "127.0.0.1", "interface": "lo"}, ""),
            (":8787", {"host": "localhost"}, ""),
            (False, {"host": "::1"}, ""),
            (False, {"host": "tcp://127.0.0.1:0"}, ""),
            (False, {"host": "0.0.0.0", "security": True}, ""),
            (False, {"host": "0.0.0.0", "security": Security(require_encryption=True)}, ""),
        ],
    )
    def test_what_is_warned_of(self, dashboard, options, said):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_if_open(dashboard, options, stacklevel=1)
        assert len(caught) == bool(said)
        if said:
            with pytest.warns(UserWarning, match=said):
                warn_if_open(dashboard, options, stacklevel=1)


class TestTls:
    def test_only_holders_of_the_certificate_come_in(self, certificate, new_sockets):
        ours, others = certificate("ours"), certificate("others")
        with start("cpu", security=Security(**ours)) as client:
            address = client.scheduler.address
            assert address.startswith("tls://127.0.0.1")
            assert all(map(is_loopback, new_sockets()))
            with join(address=address, security=Security(**ours)) as joined:
                assert joined.submit(abs, -2).result() == 2
            with configured(ours), _open_client(COMMAND | {"scheduler": address}) as joined:
                assert joined.submit(abs, -2).result() == 2
            with pytest.raises(ClusterError, match=r"uses TLS, and this client has no certificate; .*comm\.tls"):
                join(address=address)
            with pytest.raises(ClusterError, match="correct the address or the certificate"):
                join(address=address, security=Security(**others), timeout=1)
            with pytest.raises(ClusterError, match="no scheduler answers"):
                join(address=address.replace("tls", "tcp"), timeout=1)
