"""``linkwise fit`` and ``linkwise predict`` on many Parquet files, computed with Dask chunk by chunk."""
