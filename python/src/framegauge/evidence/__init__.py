"""What a run must prove: treatment, fidelity, conservation, costs."""
