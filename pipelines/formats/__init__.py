"""Files and objects into stores: `graphs` and `samples`, a module for each format."""
