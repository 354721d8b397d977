"""weir: streaming jobs you can change safely."""
