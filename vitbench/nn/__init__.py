"""The torch modules behind our own models."""
