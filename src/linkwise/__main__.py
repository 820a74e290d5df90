"""``python -m linkwise`` is the command ``linkwise``."""

from linkwise.cli import main

if __name__ == "__main__":
    main()
