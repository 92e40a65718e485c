"""What every pipeline asks of its workers: state kept over attempts, capacity, rows dealt out, progress."""
