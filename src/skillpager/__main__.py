"""`python -m skillpager` is the command `skillpager`."""

from skillpager.cli.app import main

if __name__ == "__main__":
    main()
