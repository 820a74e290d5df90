"""The papers' experiments as functions that return tables; ``make reproduce`` prints them."""

from linkwise.experiments.widths import link_graph_widths

__all__ = ["EXPERIMENTS", "link_graph_widths"]

#: Name on the command line and the function that returns (head, rows).
EXPERIMENTS = {"link_graph_widths": link_graph_widths}
