"""Start a Dask cluster or join a running one. The client is passed to the pipelines; this package has no algorithm."""

from clusters.batch import join as join
from clusters.errors import ClusterError as ClusterError
from clusters.local import start as start
from clusters.settings import CONFIG_FILE as CONFIG_FILE
