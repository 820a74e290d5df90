"""A page in the browser where people answer questions, see the clusters and decide about classes.

``linkwise workbench data.csv`` serves it. It needs ``linkwise[cli,workbench]``.
"""

__all__: list[str] = []
