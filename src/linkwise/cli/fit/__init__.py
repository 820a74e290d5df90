"""``linkwise fit``: cluster a file of rows under a file of links."""

from linkwise.cli.fit.command import fit

__all__ = ["fit"]
