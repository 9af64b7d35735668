"""`python -m postmax`."""

from postmax.cli import main

if __name__ == "__main__":
    main()
