"""Graph algorithms behind the links: groups, contraction, colouring, feasibility, elimination orders."""

# ruff: noqa: F401

from linkwise.graph.colourability import KColouring, find_clique, k_colouring
from linkwise.graph.colouring import core_numbers, degeneracy, dsatur_colouring, greedy_colouring
from linkwise.graph.csr import (
    Adjacency,
    adjacency,
    breadth_first_order,
    compact,
    group_labels,
    induced_subgraph,
    is_forest,
    reversed_slots,
    unique_pairs,
)
from linkwise.graph.elimination import EliminationOrder, min_fill_order
from linkwise.graph.feasibility import Feasibility, check_feasibility, chunklet_labels
from linkwise.graph.parity import two_colouring
from linkwise.graph.witness import must_link_path, path_witness

# The public names; the others are building blocks of the estimators.
__all__ = ["Feasibility", "check_feasibility"]
