"""Graph algorithms behind the links: groups, contraction, colouring, feasibility, elimination orders."""

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

__all__ = [
    "Adjacency",
    "EliminationOrder",
    "Feasibility",
    "KColouring",
    "adjacency",
    "breadth_first_order",
    "check_feasibility",
    "chunklet_labels",
    "compact",
    "core_numbers",
    "degeneracy",
    "dsatur_colouring",
    "find_clique",
    "greedy_colouring",
    "group_labels",
    "induced_subgraph",
    "is_forest",
    "k_colouring",
    "min_fill_order",
    "must_link_path",
    "path_witness",
    "reversed_slots",
    "two_colouring",
    "unique_pairs",
]
