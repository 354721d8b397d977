"""Steps: planned batches that end at a chosen position."""
