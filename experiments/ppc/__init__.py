"""Experiments of Lu and Leen (2007) on penalised probabilistic clustering."""
