"""``linkwise demo``: what links and beliefs gain, on data that come with the library."""

from linkwise.cli.demo.command import demo

__all__ = ["demo"]
