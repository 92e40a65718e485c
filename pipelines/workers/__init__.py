"""What every pipeline needs from its workers: state kept between tasks, capacity, distribution of rows, progress."""
