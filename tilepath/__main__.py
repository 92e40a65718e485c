"""`python -m tilepath`: the command line."""

from tilepath.cli import main

if __name__ == "__main__":
    main()
