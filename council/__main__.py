"""`python -m council` is the `council` command."""

from council.cli.main import main

if __name__ == "__main__":
    main()
