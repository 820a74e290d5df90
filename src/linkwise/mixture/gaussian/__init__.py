"""Gaussians: parameters, sufficient statistics, passes over the data and their kernels."""
