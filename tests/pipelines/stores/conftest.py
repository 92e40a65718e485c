"""The stores of tiny_stores."""

from tiny_stores import tiny_stores as tiny_stores
