"""Training of the perception network.

Nothing here is imported where a robot runs, but ``torch_network`` when torch is asked to compute in
onnxruntime's place. Only ``batches``, ``networks``, ``losses``, ``train``, ``export`` and
``torch_network`` need torch (requirements/learning.txt).
"""
