"""Import files and objects into stores: the packages `graphs` and `samples` have one module for each format."""

from pipelines.formats.graphs import import_graph as import_graph
from pipelines.formats.samples import import_samples as import_samples
