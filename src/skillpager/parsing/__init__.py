"""Stage 1: a path or text becomes a `Skill`, and a `Skill` becomes fragments."""
