"""Workers of all pipelines: state kept between tasks, capacity, arrays passed on, rows dealt out, progress."""
