"""What is read from finished stores: routes, measures, pictures, tables."""
