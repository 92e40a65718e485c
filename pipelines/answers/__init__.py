"""Answers from finished stores: routes, measures, pictures, tables."""
