"""Metrics of stored predictions: one file each, pure functions of test logits and labels."""
