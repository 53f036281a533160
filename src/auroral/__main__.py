"""`python -m auroral` is the command `auroral`."""

from auroral.cli.main import main

if __name__ == "__main__":
    main()
