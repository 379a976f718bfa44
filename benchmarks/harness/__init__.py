"""What the benchmarks share: settings, processes, stimuli, figures. Not a part of the package."""
