"""Perception by a small trained network, run by onnxruntime or torch behind one protocol.

Two networks share the work. One looks at the whole picture, small: where may the target be, and
what do the surroundings look like? The other looks closely at a cut-out of fixed *metric* size
around that place: is it really the target, where exactly is its center, which pixels are its face,
how is it turned, and how certain is all of that? ``docs/perception.md`` tells the story.
"""
