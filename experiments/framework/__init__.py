"""Trials, tables, figures and the page of results."""
