"""``linkwise ask``: questions about pairs of rows, answered with single keys."""

from linkwise.cli.ask.command import ask

__all__ = ["ask"]
