"""Published methods as small kernels, and their host side."""
