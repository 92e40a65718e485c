"""A module for each suite: `add_arguments`, `run` and CONVENTION, what is counted."""
