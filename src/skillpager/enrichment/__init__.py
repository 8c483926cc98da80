"""An optional part of the offline stage: a language model writes what each node is asked for."""
