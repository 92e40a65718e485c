"""The clusters and small stores of pipeline_fixtures."""

from pipeline_fixtures import *  # noqa: F403
