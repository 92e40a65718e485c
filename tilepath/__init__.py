"""tilepath for users: the command line and interfaces in other libraries' conventions. A thin outermost layer."""
