"""Experiments of Lu and Carreira-Perpinan (2008) on constrained spectral clustering."""
