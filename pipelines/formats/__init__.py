"""Importing files and objects into stores: `graphs` and `samples`, with one module per format."""

from pipelines.formats.graphs import import_graph as import_graph
from pipelines.formats.samples import import_samples as import_samples
