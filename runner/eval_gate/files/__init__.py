"""Read and write files safely: bounded reads, and writes only to allowed places."""
