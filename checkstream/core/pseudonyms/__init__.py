"""Values of a prompt, what stands for them towards the model, and how they come back to their caller."""
