"""The paper's claims as data, and the word that a study's interval decides for each."""
