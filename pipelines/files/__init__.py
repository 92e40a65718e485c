"""Files outside stores: output files that appear when complete, tables, figures, and lists of vertices."""
