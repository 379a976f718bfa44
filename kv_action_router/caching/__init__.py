"""Stage 2: a task key in, a cached motion or the reason why there is none out."""
