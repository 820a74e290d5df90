"""Experiments of Bilenko and Basu (2004) on HMRF-KMeans."""
