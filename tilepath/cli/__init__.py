"""The command line of tilepath, which brings pipelines and clusters together.

Each command imports its modules when it runs, so `tilepath --help` loads neither NumPy nor Dask.
"""

from tilepath.cli.command import main as main
from tilepath.cli.command import tilepath as tilepath
