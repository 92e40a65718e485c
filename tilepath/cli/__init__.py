"""The command line of tilepath, the one place that sees both pipelines and clusters.

A command imports what it needs when it runs: `tilepath --help` loads neither NumPy nor Dask.
"""

from tilepath.cli.command import main as main
from tilepath.cli.command import tilepath as tilepath
