"""Discriminative clustering: boundaries between clusters that links and the gaps in the data decide."""

from typing import TYPE_CHECKING

from linkwise._exports import resolver

if TYPE_CHECKING:
    from linkwise.discriminative.clustering import DiscriminativeClustering as DiscriminativeClustering

__all__ = ["DiscriminativeClustering"]

__getattr__ = resolver(__name__, {"DiscriminativeClustering": "linkwise.discriminative.clustering"})
