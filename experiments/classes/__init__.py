"""Experiments of Preston et al. (2010) on beliefs about classes."""
