"""The checks of a run: proof of its treatment, fidelity, conservation, costs."""
