"""K-means under hard links: assignment, search and Lloyd's algorithm."""
