"""Experiments of Shental et al. (2003) on constrained EM."""
