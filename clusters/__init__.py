"""Start a Dask cluster or join a running one. Knows no algorithm: a pipeline is handed the client."""

from clusters.batch import join as join
from clusters.errors import ClusterError as ClusterError
from clusters.local import start as start
from clusters.settings import CONFIG_FILE as CONFIG_FILE
