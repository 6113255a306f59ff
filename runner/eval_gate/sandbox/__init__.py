"""A folder for one agent: what its file tools do happens there and nowhere else."""
