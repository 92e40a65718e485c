"""tilepath for users: the command line and other libraries' conventions. The outermost layer, and a thin one."""
