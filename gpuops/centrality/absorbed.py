"""The error of both halves of `gpuops.centrality`, which `Summation` turns into an error for users."""


class Absorbed(Exception):
    """The length of the arc with this number is lost when it is added to a distance."""
