"""What a part of the demo consists of."""

from __future__ import annotations

from dataclasses import dataclass, field

from linkwise._pages import TextTable


@dataclass(frozen=True)
class Gain:
    """One row of the table: a score without and with what people know."""

    task: str
    knowledge: str
    measure: str
    without: float
    with_it: float


@dataclass(frozen=True)
class Illustration:
    """A picture of the report, and the name of its file."""

    name: str
    png: bytes
    description: str
    caption: str


@dataclass(frozen=True)
class Chapter:
    """One part of the demo: text, pictures beside each other, tables, and how to do the same."""

    title: str
    text: list[str]
    gain: list[Gain]
    tables: list[TextTable]
    pictures: list[Illustration] = field(default_factory=list)
    code: str = ""
    command: str = ""
