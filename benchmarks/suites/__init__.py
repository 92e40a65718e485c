"""A module for each suite, with `add_arguments`, `run`, and CONVENTION, a text that defines the rates of the suite."""
