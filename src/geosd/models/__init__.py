"""Language models: built by name, saved, loaded, run."""
